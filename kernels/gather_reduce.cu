// gather_reduce: what every aggregation is made of. For each row r of a grouping of edges, with x_e
// the row that edge e reads, k_e its factor (weight over the divisor of what it reads):
//
//   gather_sum       y_r = (start_r + sum_e k_e x_e) / d_r
//   ... with WINNER  the same over the columns whose extremum e was: the backward of
//   gather_extremum  y_r = max_e (s k_e x_e) s, s = 1 or -1, and the CSC position of the first such
//                    e; a NaN wins; 0 and -1 without edges
//   gather_spread    y_r = sum_e (x_e - c_r)^2 / d_r, or its square root: variance around means c;
//                    or, with `own`, the sum of k_e times the gradient of that (spread_gradient)
//
// Work split: threadIdx.y owns an item (a row, or a piece of a long one, see rows.cuh), threadIdx.x
// owns VEC columns of it; blockIdx.y walks tiles of columns, blockIdx.z the batch. Launch:
// blockDim.x * blockDim.y == kBlockThreads, blockDim.x a power of two up to 32; pointers, row and
// batch strides, dim and the columns of a head are multiples of VEC.
#include "common/edges.cuh"

namespace edgegrad {

template <typename T, typename IdxT, int VEC, int WINNER>
__global__ void __launch_bounds__(kBlockThreads, kResidentBlocks)
gather_sum(void* __restrict__ output, index_t output_row, index_t output_batch,
           int output_is_accumulator, accum_t<T>* __restrict__ partials,
           const T* __restrict__ input, index_t input_row, index_t input_batch,
           const IdxT* __restrict__ extrema, index_t extrema_row, index_t extrema_batch,
           const void* __restrict__ weight, index_t weight_row, int weight_is_float, int head_width,
           const IdxT* __restrict__ divide_offsets, const void* __restrict__ divide_sums,
           int divide_is_float, const IdxT* __restrict__ gathered_offsets,
           const void* __restrict__ gathered_sums, int gathered_is_float,
           const void* __restrict__ start, index_t start_row, index_t start_batch,
           int start_is_accumulator, const IdxT* __restrict__ start_ids, index_t start_count,
           const IdxT* __restrict__ offsets, const IdxT* __restrict__ ids,
           const IdxT* __restrict__ order, const IdxT* __restrict__ map,
           const index_t* __restrict__ piece_row, const index_t* __restrict__ piece_begin,
           const index_t* __restrict__ piece_end, index_t n_items, index_t limit, int n_batch,
           int dim) {
  using A = accum_t<T>;
  // Edges whose loads are in flight before the first is added, as registers allow.
  constexpr int kFlight = (VEC >= 8 || sizeof(A) == 8 ? 2 : 4) / (WINNER ? 2 : 1);
  const NodeArray<const T> x{input, input_row, input_batch};
  const NodeArray<const IdxT> won{extrema, extrema_row, extrema_batch};
  const Factor<T> factor{weight, weight_row, weight_is_float};
  const Divisor<T, IdxT> divide{divide_offsets, divide_sums, divide_is_float};
  const Divisor<T, IdxT> gathered{gathered_offsets, gathered_sums, gathered_is_float};
  const Edges<IdxT> edges{offsets, ids, order, map};
  const Pieces pieces{piece_row, piece_begin, piece_end, n_items, limit};
  const int channels = blockDim.x * VEC;
  for (int c = blockIdx.y * channels + threadIdx.x * VEC; c < dim; c += gridDim.y * channels) {
    const int head = c / head_width;
    for (index_t batch = blockIdx.z; batch < n_batch; batch += gridDim.z)
      for (index_t i = first_item(); i < n_items; i += item_stride()) {
        const Item item = edges.item(pieces, i);
        if (item.begin > item.end) continue;
        A acc[VEC] = {};
        // A row's start enters once, with its first piece.
        if (item.row < start_count && (!offsets || item.begin == offsets[item.row])) {
          const index_t from = start_ids ? start_ids[item.row] : item.row;
          const index_t at = batch * start_batch + from * start_row + c;
          if (start_is_accumulator) {
            load_vec<A, VEC>(acc, static_cast<const A*>(start) + at);
          } else {
            load_vec<T, VEC>(acc, static_cast<const T*>(start) + at);
          }
        }
#pragma unroll 1
        for (index_t first = item.begin; first < item.end; first += kFlight) {
          Vec<T, VEC> features[kFlight];
          IdxT at[WINNER ? kFlight : 1][VEC];
          index_t position[WINNER ? kFlight : 1];
          A k[kFlight];
#pragma unroll
          for (int u = 0; u < kFlight; ++u) {
            // Past the end the last edge is read again, and not added.
            const index_t e = min(first + u, item.end - 1);
            const index_t row = edges.row_read(e);
            const index_t p = weight || WINNER ? edges.position(e) : 0;
            const A divisor = WINNER ? A(1) : gathered.of(row);
            features[u] = load_whole<T, VEC>(x.at(batch, row) + c);
            k[u] = factor.of(p, head);
            if (divisor != A(1)) k[u] /= divisor;
            if (divisor == A(0) || first + u >= item.end) features[u] = {}, k[u] = A(0);
            if (WINNER) position[u] = p;
            if (WINNER) load_ids(at[u], won.at(batch, row) + c);
          }
#pragma unroll
          for (int u = 0; u < kFlight; ++u)
#pragma unroll
            for (int v = 0; v < VEC; ++v) {
              const A term = k[u] * widen(features[u].v[v]);
              acc[v] += !WINNER || at[WINNER ? u : 0][v] == position[WINNER ? u : 0] ? term : A(0);
            }
        }
        if (pieces.row) {
          store_sums(partials + (batch * n_items + i) * dim + c, acc);
          continue;
        }
        const A divisor = divide.of(i);
#pragma unroll
        for (int v = 0; v < VEC; ++v) acc[v] = divisor == A(0) ? A(0) : acc[v] / divisor;
        const index_t at = batch * output_batch + i * output_row + c;
        if (output_is_accumulator) {
          store_sums(static_cast<A*>(output) + at, acc);
        } else {
          store_vec<T, VEC>(static_cast<T*>(output) + at, acc);
        }
      }
  }
}

// Partials: values of all pieces, then their positions.
template <typename T, typename IdxT, int VEC>
__global__ void __launch_bounds__(kBlockThreads, kResidentBlocks)
gather_extremum(T* __restrict__ output, index_t output_row, index_t output_batch,
                IdxT* __restrict__ extrema, index_t extrema_row, index_t extrema_batch,
                accum_t<T>* __restrict__ partials, index_t* __restrict__ partial_positions,
                const T* __restrict__ input, index_t input_row, index_t input_batch, int sign,
                const void* __restrict__ weight, index_t weight_row, int weight_is_float,
                int head_width, const IdxT* __restrict__ offsets, const IdxT* __restrict__ ids,
                const IdxT* __restrict__ order, const IdxT* __restrict__ map,
                const index_t* __restrict__ piece_row, const index_t* __restrict__ piece_begin,
                const index_t* __restrict__ piece_end, index_t n_items, index_t limit, int n_batch,
                int dim) {
  using A = accum_t<T>;
  const NodeArray<const T> x{input, input_row, input_batch};
  const Factor<T> factor{weight, weight_row, weight_is_float};
  const Edges<IdxT> edges{offsets, ids, order, map};
  const Pieces pieces{piece_row, piece_begin, piece_end, n_items, limit};
  const int channels = blockDim.x * VEC;
  for (int c = blockIdx.y * channels + threadIdx.x * VEC; c < dim; c += gridDim.y * channels) {
    const int head = c / head_width;
    for (index_t batch = blockIdx.z; batch < n_batch; batch += gridDim.z)
      for (index_t i = first_item(); i < n_items; i += item_stride()) {
        const Item item = edges.item(pieces, i);
        if (item.begin > item.end) continue;
        A best[VEC] = {};
        int at[VEC] = {};
#pragma unroll 2
        for (index_t e = item.begin; e < item.end; ++e) {
          const Vec<T, VEC> features = load_whole<T, VEC>(x.at(batch, edges.row_read(e)) + c);
          const A k = weight ? sign * factor.of(edges.position(e), head) : A(sign);
#pragma unroll
          for (int v = 0; v < VEC; ++v) {
            const A value = k * widen(features.v[v]);
            const bool better = e == item.begin || (best[v] == best[v] && !(value <= best[v]));
            best[v] = better ? value : best[v];
            at[v] = better ? static_cast<int>(e - item.begin) : at[v];
          }
        }
        const bool empty = item.begin == item.end;
        if (pieces.row) {
          const index_t to = (batch * n_items + i) * dim + c;
          store_sums(partials + to, best);
          index_t position[VEC];
#pragma unroll
          for (int v = 0; v < VEC; ++v) position[v] = edges.position(item.begin + at[v]);
          store_sums(partial_positions + to, position);
          continue;
        }
        IdxT position[VEC];
#pragma unroll
        for (int v = 0; v < VEC; ++v) {
          best[v] = empty ? A(0) : sign * best[v];
          position[v] = static_cast<IdxT>(empty ? -1 : edges.position(item.begin + at[v]));
        }
        store_vec<T, VEC>(output + batch * output_batch + i * output_row + c, best);
        store_sums(extrema + batch * extrema_batch + i * extrema_row + c, position);
      }
  }
}

// The largest of every long row's pieces, the first among equals; threadIdx.y owns a long row.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads, kResidentBlocks)
merge_extrema(T* __restrict__ output, index_t output_row, index_t output_batch,
              void* __restrict__ extrema, index_t extrema_row, index_t extrema_batch,
              int wide_extrema, const accum_t<T>* __restrict__ partials,
              const index_t* __restrict__ positions, const index_t* __restrict__ piece_row,
              const index_t* __restrict__ first_piece, index_t n_long, index_t n_pieces, int sign,
              int n_batch, index_t width) {
  using A = accum_t<T>;
  for (index_t batch = blockIdx.z; batch < n_batch; batch += gridDim.z)
    for (index_t l = first_item(); l < n_long; l += item_stride()) {
      const index_t row = piece_row[first_piece[l]];
      for (index_t c = blockIdx.y * blockDim.x + threadIdx.x; c < width;
           c += gridDim.y * blockDim.x) {
        const index_t first = (batch * n_pieces + first_piece[l]) * width + c;
        A best = partials[first];
        index_t at = first;
        for (index_t p = 1; p < first_piece[l + 1] - first_piece[l]; ++p) {
          const A value = partials[first + p * width];
          const bool better = best == best && !(value <= best);
          at = better ? first + p * width : at;
          best = better ? value : best;
        }
        output[batch * output_batch + row * output_row + c] = narrow<T>(sign * best);
        const index_t to = batch * extrema_batch + row * extrema_row + c;
        if (wide_extrema) {
          static_cast<long long*>(extrema)[to] = positions[at];
        } else {
          static_cast<int*>(extrema)[to] = static_cast<int>(positions[at]);
        }
      }
    }
}

template <typename T, typename IdxT>
__global__ void __launch_bounds__(kBlockThreads, kResidentBlocks)
gather_spread(T* __restrict__ output, index_t output_row, index_t output_batch,
              accum_t<T>* __restrict__ partials, const T* __restrict__ input, index_t input_row,
              index_t input_batch, const accum_t<T>* __restrict__ centre, index_t centre_row,
              index_t centre_batch, const T* __restrict__ deviation, index_t deviation_row,
              index_t deviation_batch, const T* __restrict__ own, index_t own_row,
              index_t own_batch, const IdxT* __restrict__ divide_offsets, int root,
              const IdxT* __restrict__ gathered_offsets, const T* __restrict__ start,
              index_t start_row, index_t start_batch, index_t start_count,
              const IdxT* __restrict__ offsets, const IdxT* __restrict__ ids,
              const IdxT* __restrict__ order, const IdxT* __restrict__ map,
              const index_t* __restrict__ piece_row, const index_t* __restrict__ piece_begin,
              const index_t* __restrict__ piece_end, index_t n_items, index_t limit, int n_batch,
              int dim) {
  using A = accum_t<T>;
  const NodeArray<const T> x{input, input_row, input_batch},
      s{deviation, deviation_row, deviation_batch};
  const NodeArray<const A> m{centre, centre_row, centre_batch};
  const Divisor<T, IdxT> divide{divide_offsets, nullptr, 0}, gathered{gathered_offsets, nullptr, 0};
  const Edges<IdxT> edges{offsets, ids, order, map};
  const Pieces pieces{piece_row, piece_begin, piece_end, n_items, limit};
  for (int c = blockIdx.y * blockDim.x + threadIdx.x; c < dim; c += gridDim.y * blockDim.x)
    for (index_t batch = blockIdx.z; batch < n_batch; batch += gridDim.z)
      for (index_t i = first_item(); i < n_items; i += item_stride()) {
        const Item item = edges.item(pieces, i);
        if (item.begin > item.end) continue;
        const bool starts = item.row < start_count && item.begin == offsets[item.row];
        A acc = A(0);
        if (starts) acc = widen(start[batch * start_batch + item.row * start_row + c]);
        const A value = own ? widen(own[batch * own_batch + item.row * own_row + c]) : A(0);
        const A mean = own ? A(0) : m.at(batch, item.row)[c];
#pragma unroll 2
        for (index_t e = item.begin; e < item.end; ++e) {
          const index_t row = edges.row_read(e);
          const A feature = widen(x.at(batch, row)[c]);
          if (own) {
            const A y = deviation ? widen(s.at(batch, row)[c]) : A(0);
            acc += spread_gradient(feature, value, m.at(batch, row)[c], deviation != nullptr, y) /
                   gathered.of(row);
          } else {
            acc += (feature - mean) * (feature - mean);
          }
        }
        if (pieces.row) {
          partials[(batch * n_items + i) * dim + c] = acc;
          continue;
        }
        acc /= divide.of(i);
        output[batch * output_batch + i * output_row + c] = narrow<T>(root ? sqrt(acc) : acc);
      }
}

}  // namespace edgegrad
