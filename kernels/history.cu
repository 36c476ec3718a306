// history: tables of rows of earlier steps, which a batch reads, overwrites and adds to.
//
//   pull        y_i = H[id_i], or a default where id_i = -1
//   take        y_i = G[id_i] where i is the first position of its id, else 0; then G[id_i] = 0
//   push        H[r] = (1 - m) H[r] + m v_r    v_r: last row, or mean of the rows, whose id is r
//   accumulate  G[r] = G[r] + s sum of the rows whose id is r
//
// Work split: threadIdx.y owns a position, threadIdx.x owns every blockDim.x-th group of VEC
// channels. `order` lists positions by id, equal ids in batch order: the team that meets an id
// first works for all its positions, so no row is written twice, and sums need no atomics; they are
// folded (common/fold.h), so that the order of the batch does not matter either.
//
// `fault` has the first position whose id is out of range and the first whose row differs from an
// earlier one of its id, kNoFault if there is none; after a fault the kernels do nothing. Two
// batches may share it: then the positions of the second begin at `base`.
//
// Launch: blockDim.x * blockDim.y == kBlockThreads, blockDim.x a power of two up to 32; pointers,
// row strides and dim are multiples of VEC.
#include "common/fold.h"
#include "common/rows.cuh"
#include "common/team.cuh"
#include "common/vec.cuh"

namespace edgegrad {

constexpr index_t kNoFault = 0x7fffffffffffffffll;

struct Ids {
  const void* ids;
  int wide;
  const index_t* order;  // null: batch order, and repeated ids do not matter
  __device__ __forceinline__ index_t at(index_t i) const {
    return wide ? static_cast<const long long*>(ids)[i] : static_cast<const int*>(ids)[i];
  }
  __device__ __forceinline__ index_t position(index_t p) const { return order ? order[p] : p; }
  __device__ __forceinline__ bool repeats(index_t p) const {
    return order && p > 0 && at(order[p]) == at(order[p - 1]);
  }
};

// Positions are not negative, so they compare alike as unsigned numbers.
__device__ __forceinline__ void report(index_t* fault, index_t position) {
  atomicMin(reinterpret_cast<unsigned long long*>(fault),
            static_cast<unsigned long long>(position));
}

template <typename IdxT>
__global__ void __launch_bounds__(kBlockThreads, kResidentBlocks)
history_check(index_t* __restrict__ fault, const IdxT* __restrict__ ids, index_t n, index_t n_rows,
              index_t base) {
  for (index_t i = first_item(); i < n; i += item_stride())
    if (ids[i] < -1 || ids[i] >= n_rows) report(fault, base + i);
}

// Rows are compared bit by bit, `words` words of 16 bits each.
template <typename IdxT>
__global__ void __launch_bounds__(kBlockThreads, kResidentBlocks)
history_compare(index_t* __restrict__ fault, const void* __restrict__ rows, index_t row_words,
                const IdxT* __restrict__ ids, const index_t* __restrict__ order, index_t n,
                index_t words) {
  const auto* bits = static_cast<const unsigned short*>(rows);
  for (index_t p = first_item() + 1; p < n; p += item_stride()) {
    const index_t i = order[p], before = order[p - 1];
    if (ids[i] < 0 || ids[i] != ids[before]) continue;
    bool same = true;
    for (index_t w = threadIdx.x; w < words; w += blockDim.x)
      same = same && bits[i * row_words + w] == bits[before * row_words + w];
    if (!same) report(fault + 1, i);
  }
}

template <typename S, int VEC>
__device__ __forceinline__ double squared_norm(const S* row, int dim) {
  double sum = 0;
  for (int c = threadIdx.x * VEC; c < dim; c += blockDim.x * VEC) {
    accum_t<S> x[VEC];
    load_vec<S, VEC>(x, row + c);
#pragma unroll
    for (int v = 0; v < VEC; ++v) sum += static_cast<double>(x[v]) * static_cast<double>(x[v]);
  }
  return team_sum(sum, blockDim.x, team_mask(blockDim.x));
}

// Pull, and take with `order`. S: the store's type, R: that of the rows beside it.
template <typename S, typename R, int VEC>
__global__ void __launch_bounds__(kBlockThreads, kResidentBlocks)
history_gather(R* __restrict__ output, index_t output_row, S* store, index_t store_row,
               const void* __restrict__ ids, int wide, const index_t* __restrict__ order, index_t n,
               const index_t* __restrict__ fault, double fill, int clear, double max_norm,
               int dim) {
  using A = accum_t<S>;
  if (fault[0] != kNoFault || fault[1] != kNoFault) return;
  const Ids batch{ids, wide, order};
  for (index_t p = first_item(); p < n; p += item_stride()) {
    const index_t i = batch.position(p), row = batch.at(i);
    const bool found = row >= 0 && !batch.repeats(p);
    const A other = row < 0 ? static_cast<A>(fill) : A(0);
    S* from = store + row * store_row;
    A scale = A(1);
    if (found && max_norm >= 0) {
      const double norm = sqrt(squared_norm<S, VEC>(from, dim));
      if (norm > max_norm) scale = static_cast<A>(max_norm / norm);
    }
    for (int c = threadIdx.x * VEC; c < dim; c += blockDim.x * VEC) {
      A x[VEC];
      if (found) {
        load_vec<S, VEC>(x, from + c);
        const A zeros[VEC] = {};
        if (clear) store_vec<S, VEC>(from + c, zeros);
      }
#pragma unroll
      for (int v = 0; v < VEC; ++v) x[v] = found ? scale * x[v] : other;
      store_vec<R, VEC>(output + i * output_row + c, x);
    }
  }
}

// Column c summed over the rows of one id: positions [p, end) by id.
template <typename R>
__device__ __forceinline__ double
sum_rows(const R* __restrict__ rows, index_t rows_row, const index_t* __restrict__ order, index_t p,
         index_t end, int c) {
  double largest = 0;
  for (index_t q = p; q < end; ++q) {
    const double size = fabs(static_cast<double>(widen(rows[order[q] * rows_row + c])));
    largest = size > largest ? size : largest;
  }
  FoldedSum sum(largest, end - p);
  for (index_t q = p; q < end; ++q) sum.add(widen(rows[order[q] * rows_row + c]));
  return sum.total();
}

enum { kLast, kSum, kMean };  // what stands for the rows of one id

// Push and accumulate: store = keep * store + factor * row.
template <typename S, typename R, int VEC>
__global__ void __launch_bounds__(kBlockThreads, kResidentBlocks)
history_scatter(S* __restrict__ store, index_t store_row, const R* __restrict__ rows,
                index_t rows_row, const void* __restrict__ ids, int wide,
                const index_t* __restrict__ order, index_t n, const index_t* __restrict__ fault,
                int of, double keep, double factor, index_t* __restrict__ age, index_t step,
                int dim) {
  using A = accum_t<S>;
  if (fault[0] != kNoFault || fault[1] != kNoFault) return;
  const Ids batch{ids, wide, order};
  const A kept = static_cast<A>(keep);
  for (index_t p = first_item(); p < n; p += item_stride()) {
    const index_t row = batch.at(order[p]);
    if (row < 0 || batch.repeats(p)) continue;
    index_t end = p + 1;
    while (end < n && batch.repeats(end)) ++end;
    S* to = store + row * store_row;
    if (of == kLast || end == p + 1) {
      const R* from = rows + order[end - 1] * rows_row;
      const A by = static_cast<A>(factor);
      for (int c = threadIdx.x * VEC; c < dim; c += blockDim.x * VEC) {
        A x[VEC], old[VEC] = {};
        load_vec<R, VEC>(x, from + c);
        if (kept != A(0)) load_vec<S, VEC>(old, to + c);
#pragma unroll
        for (int v = 0; v < VEC; ++v) x[v] = kept != A(0) ? kept * old[v] + by * x[v] : by * x[v];
        store_vec<S, VEC>(to + c, x);
      }
    } else {
      const A by = static_cast<A>(of == kMean ? factor / static_cast<double>(end - p) : factor);
      for (int c = threadIdx.x; c < dim; c += blockDim.x) {
        const A x = by * static_cast<A>(sum_rows(rows, rows_row, order, p, end, c));
        to[c] = narrow<S>(kept != A(0) ? kept * widen(to[c]) + x : x);
      }
    }
    if (age && threadIdx.x == 0) age[row] = step;
  }
}

template <typename IdxT>
__global__ void __launch_bounds__(kBlockThreads, kResidentBlocks)
history_stale(bool* __restrict__ mask, const index_t* __restrict__ age,
              const IdxT* __restrict__ ids, index_t n, const index_t* __restrict__ fault,
              index_t step, index_t max_age) {
  if (fault[0] != kNoFault) return;
  for (index_t i = first_item(); i < n; i += item_stride()) {
    const index_t pushed = ids[i] < 0 ? step : age[ids[i]];
    mask[i] = ids[i] >= 0 && (pushed < 0 || step - pushed > max_age);
  }
}

}  // namespace edgegrad
