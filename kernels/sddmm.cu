// sddmm: a value of every edge from the rows of its two ends (sampled dense-dense product).
//
//   y_e  = <l_i, r_j> per head (dot), or l_i op r_j per channel     for e = (j -> i)
//   dl_i = sum_{e = (j -> i)} d_e,  dr_j = sum_{e = (j -> i)} d_e   with d_e as in edge_op.h
//
// Rows are n_heads x dim channels side by side (`width`), edges likewise, n_heads for a dot
// product. Work split of the values: teams of blockDim.x threads take runs of kRunEdges edges,
// whatever rows those belong to, and keep the destination's row while it stays the same. Of the
// gradients: threadIdx.y owns an item (a row, or a piece of a long one, see rows.cuh), threadIdx.x
// owns VEC channels of it; additions follow the order of edges inside an item. Launch: blockDim.x *
// blockDim.y == kBlockThreads, blockDim.x a power of two up to 32; pointers of rows read or written
// VEC at a time, their strides and channels are multiples of VEC.
#include "common/edge_op.h"
#include "common/rows.cuh"
#include "common/team.cuh"
#include "common/vec.cuh"

namespace edgegrad {

constexpr int kRunEdges = 32;

// A run of edges and the row its first edge is in; the loop walks both.
struct Run {
  index_t begin, end, dst;
};

template <typename IdxT>
__device__ __forceinline__ Run run_at(index_t run, const IdxT* offsets, index_t n_edges,
                                      index_t n_dst_nodes) {
  const index_t begin = run * kRunEdges;
  return {begin, min(begin + kRunEdges, n_edges), row_of_edge(offsets, n_dst_nodes, begin)};
}

// Every op but dot. blockIdx.y walks tiles of channels.
template <typename T, typename IdxT, int VEC>
__global__ void __launch_bounds__(kBlockThreads, kResidentBlocks)
sddmm_map(T* __restrict__ output, index_t output_row, const T* __restrict__ lhs, index_t lhs_row,
          const T* __restrict__ rhs, index_t rhs_row, const IdxT* __restrict__ offsets,
          const IdxT* __restrict__ indices, index_t n_edges, index_t n_dst_nodes, index_t n_runs,
          int op, index_t width) {
  using A = accum_t<T>;
  const index_t channels = blockDim.x * VEC;
  for (index_t c = blockIdx.y * channels + threadIdx.x * VEC; c < width; c += gridDim.y * channels)
    for (index_t i = first_item(); i < n_runs; i += item_stride()) {
      const Run run = run_at(i, offsets, n_edges, n_dst_nodes);
      index_t dst = run.dst;
      A left[VEC] = {}, right[VEC] = {}, value[VEC];
      if (reads_lhs(op)) load_vec<T, VEC>(left, lhs + dst * lhs_row + c);
      for (index_t e = run.begin; e < run.end; ++e) {
        if (offsets[dst + 1] <= e) {
          while (offsets[dst + 1] <= e) ++dst;
          if (reads_lhs(op)) load_vec<T, VEC>(left, lhs + dst * lhs_row + c);
        }
        if (reads_rhs(op)) load_vec<T, VEC>(right, rhs + indices[e] * rhs_row + c);
#pragma unroll
        for (int v = 0; v < VEC; ++v) value[v] = edge_op(op, left[v], right[v]);
        store_vec<T, VEC>(output + e * output_row + c, value);
      }
    }
}

// Neighbouring teams take neighbouring heads of a run of edges.
template <typename T, typename IdxT, int VEC>
__global__ void __launch_bounds__(kBlockThreads, kResidentBlocks)
sddmm_dot(T* __restrict__ output, index_t output_row, const T* __restrict__ lhs, index_t lhs_row,
          const T* __restrict__ rhs, index_t rhs_row, const IdxT* __restrict__ offsets,
          const IdxT* __restrict__ indices, index_t n_edges, index_t n_dst_nodes, index_t n_runs,
          index_t n_heads, index_t dim) {
  using A = accum_t<T>;
  const int lanes = blockDim.x, first = threadIdx.x * VEC;
  const unsigned mask = team_mask(lanes);
  for (index_t i = first_item(); i < n_runs * n_heads; i += item_stride()) {
    const index_t head = i % n_heads;
    const Run run = run_at(i / n_heads, offsets, n_edges, n_dst_nodes);
    index_t dst = run.dst;
    // The first tile of the destination's row stays in registers, all of it if it is narrow.
    A left[VEC] = {};
    const T* l = lhs + dst * lhs_row + head * dim;
    if (first < dim) load_vec<T, VEC>(left, l + first);
    for (index_t e = run.begin; e < run.end; ++e) {
      if (offsets[dst + 1] <= e) {
        while (offsets[dst + 1] <= e) ++dst;
        l = lhs + dst * lhs_row + head * dim;
        if (first < dim) load_vec<T, VEC>(left, l + first);
      }
      const T* r = rhs + indices[e] * rhs_row + head * dim;
      A sum[VEC] = {}, x[VEC], y[VEC];
      if (first < dim) {
        load_vec<T, VEC>(y, r + first);
#pragma unroll
        for (int v = 0; v < VEC; ++v) sum[v] = left[v] * y[v];
      }
      for (index_t c = first + lanes * VEC; c < dim; c += lanes * VEC) {
        load_vec<T, VEC>(x, l + c);
        load_vec<T, VEC>(y, r + c);
#pragma unroll
        for (int v = 0; v < VEC; ++v) sum[v] += x[v] * y[v];
      }
      A total = A(0);
#pragma unroll
      for (int v = 0; v < VEC; ++v) total += sum[v];
      total = team_sum(total, lanes, mask);
      if (threadIdx.x == 0) output[e * output_row + head] = narrow<T>(total);
    }
  }
}

// The gradient of one side, over the graph from its rows to the other side; `position` says where
// an edge's gradient is (null: in the order of the graph). `per_head` channels share a value of it.
template <typename T, typename IdxT, int VEC>
__global__ void __launch_bounds__(kBlockThreads, kResidentBlocks)
sddmm_gradient(T* __restrict__ result, index_t result_row, accum_t<T>* __restrict__ partials,
               const T* __restrict__ grad_output, index_t grad_output_row,
               const T* __restrict__ other, index_t other_row, const T* __restrict__ own,
               index_t own_row, const IdxT* __restrict__ offsets,
               const IdxT* __restrict__ other_end, const IdxT* __restrict__ position,
               const index_t* __restrict__ piece_row, const index_t* __restrict__ piece_begin,
               const index_t* __restrict__ piece_end, index_t n_items, index_t limit, int term,
               index_t per_head, index_t width) {
  using A = accum_t<T>;
  const Pieces pieces{piece_row, piece_begin, piece_end, n_items, limit};
  const index_t channels = blockDim.x * VEC;
  for (index_t c = blockIdx.y * channels + threadIdx.x * VEC; c < width;
       c += gridDim.y * channels) {
    const T* grad_at = grad_output + (per_head > 1 ? c / per_head : c);
    for (index_t i = first_item(); i < n_items; i += item_stride()) {
      Item item = item_at(pieces, offsets, i);
      if (item.begin > item.end) continue;
      if (term == kZero) item.end = item.begin;
      A acc[VEC] = {}, x[VEC] = {}, y[VEC] = {}, g[VEC];
      if (reads_own(term)) load_vec<T, VEC>(y, own + item.row * own_row + c);
      for (index_t at = item.begin; at < item.end; ++at) {
        const index_t e = position ? static_cast<index_t>(position[at]) : at;
        if (per_head > 1) {
          const A shared = widen(grad_at[e * grad_output_row]);
#pragma unroll
          for (int v = 0; v < VEC; ++v) g[v] = shared;
        } else {
          load_vec<T, VEC>(g, grad_at + e * grad_output_row);
        }
        if (reads_other(term)) load_vec<T, VEC>(x, other + other_end[at] * other_row + c);
#pragma unroll
        for (int v = 0; v < VEC; ++v) acc[v] += edge_term(term, g[v], x[v], y[v]);
      }
      if (pieces.row) {
        store_sums(partials + i * width + c, acc);
      } else {
        store_vec<T, VEC>(result + i * result_row + c, acc);
      }
    }
  }
}

}  // namespace edgegrad
