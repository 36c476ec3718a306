// per_edge: what is written for every edge e = (read -> row), whose edge id is m(e).
//
//   expand       y_m(e) = u_row / d_row + s_read + h_m(e) - sum over t in list(m(e)) of z_t
//                with `extrema`, u_row where e won it, else 0; with `centre`, the gradient of a
//                variance over the values h of row's edges (spread_gradient), over d_row
//   grad_factor  dk_e = <g_row, x_read - c_row> / d_row for each head, or <g_row, x_read> over the
//                columns that e won; summed over the batch
//
// Absent operands are null. Work split: a team of blockDim.x threads owns kRunEdges edges in turn,
// its threads VEC columns each; blockIdx.y walks tiles of columns (expand alone). Launch:
// blockDim.x * blockDim.y == kBlockThreads, blockDim.x a power of two up to 32; pointers, row and
// batch strides, dim and the columns of a head are multiples of VEC.
#include "common/edges.cuh"
#include "common/team.cuh"

namespace edgegrad {

constexpr int kRunEdges = 16;

template <typename T, int VEC>
__device__ __forceinline__ void
load_either(accum_t<T> (&to)[VEC], const void* p, int is_accumulator, index_t at) {
  if (is_accumulator) {
    load_vec<accum_t<T>, VEC>(to, static_cast<const accum_t<T>*>(p) + at);
  } else {
    load_vec<T, VEC>(to, static_cast<const T*>(p) + at);
  }
}

template <typename T, typename IdxT, int VEC>
__global__ void __launch_bounds__(kBlockThreads, kResidentBlocks)
expand(T* __restrict__ output, index_t output_row, const void* __restrict__ row_values,
       index_t row_stride, int row_is_accumulator, const IdxT* __restrict__ divide_offsets,
       const void* __restrict__ divide_sums, int divide_is_float, const void* __restrict__ source,
       index_t source_row, int source_is_accumulator, const T* __restrict__ edge, index_t edge_row,
       const IdxT* __restrict__ extrema, index_t extrema_row, const accum_t<T>* __restrict__ centre,
       index_t centre_row, const T* __restrict__ deviation, index_t deviation_row,
       const T* __restrict__ subtrahend, index_t subtrahend_row,
       const IdxT* __restrict__ list_offsets, const IdxT* __restrict__ list,
       const IdxT* __restrict__ offsets, const IdxT* __restrict__ ids,
       const IdxT* __restrict__ order, const IdxT* __restrict__ map, index_t n_edges,
       index_t n_rows, int dim) {
  using A = accum_t<T>;
  const Edges<IdxT> edges{offsets, ids, order, map};
  const Divisor<T, IdxT> divide{divide_offsets, divide_sums, divide_is_float};
  const index_t runs = (n_edges + kRunEdges - 1) / kRunEdges;
  const int channels = blockDim.x * VEC;
  for (int c = blockIdx.y * channels + threadIdx.x * VEC; c < dim; c += gridDim.y * channels)
    for (index_t run = first_item(); run < runs; run += item_stride()) {
      index_t e = run * kRunEdges, row = row_of_edge(offsets, n_rows, e);
      for (const index_t end = min(n_edges, e + kRunEdges); e < end; ++e) {
        while (offsets[row + 1] <= e) ++row;
        const index_t position = edges.position(e), id = edges.id(position);
        A sum[VEC] = {}, x[VEC];
        if (row_values) {
          load_either<T, VEC>(sum, row_values, row_is_accumulator, row * row_stride + c);
          const A divisor = divide.of(row);
#pragma unroll
          for (int v = 0; v < VEC; ++v) sum[v] = divisor == A(0) ? A(0) : sum[v] / divisor;
        }
        if (extrema) {
          IdxT won[VEC];
          load_ids(won, extrema + row * extrema_row + c);
#pragma unroll
          for (int v = 0; v < VEC; ++v) sum[v] = won[v] == position ? sum[v] : A(0);
        } else if (centre) {
          A m[VEC], s[VEC] = {};
          load_vec<A, VEC>(m, centre + row * centre_row + c);
          load_vec<T, VEC>(x, edge + id * edge_row + c);
          if (deviation) load_vec<T, VEC>(s, deviation + row * deviation_row + c);
#pragma unroll
          for (int v = 0; v < VEC; ++v)
            sum[v] = spread_gradient(sum[v], x[v], m[v], deviation != nullptr, s[v]);
        } else if (edge) {
          load_vec<T, VEC>(x, edge + id * edge_row + c);
#pragma unroll
          for (int v = 0; v < VEC; ++v) sum[v] += x[v];
        }
        if (source) {
          load_either<T, VEC>(x, source, source_is_accumulator, edges.row_read(e) * source_row + c);
#pragma unroll
          for (int v = 0; v < VEC; ++v) sum[v] += x[v];
        }
        if (subtrahend) {
          const index_t begin = list_offsets ? list_offsets[id] : id;
          const index_t last = list_offsets ? list_offsets[id + 1] : id + 1;
          for (index_t i = begin; i < last; ++i) {
            if (list[i] < 0) continue;
            load_vec<T, VEC>(x, subtrahend + static_cast<index_t>(list[i]) * subtrahend_row + c);
#pragma unroll
            for (int v = 0; v < VEC; ++v) sum[v] -= x[v];
          }
        }
        store_vec<T, VEC>(output + id * output_row + c, sum);
      }
    }
}

// A lane's share of <g, x>, of the columns with won[c] == position if `won` is given.
template <typename T, typename IdxT, int VEC>
__device__ __forceinline__ accum_t<T>
lane_dot(const T* g, const T* x, const IdxT* won, index_t position, int width) {
  using A = accum_t<T>;
  A dot = A(0);
#pragma unroll 1
  for (int c = threadIdx.x * VEC; c < width; c += blockDim.x * VEC) {
    const Vec<T, VEC> gs = load_whole<T, VEC>(g + c), xs = load_whole<T, VEC>(x + c);
#pragma unroll
    for (int v = 0; v < VEC; ++v)
      dot += !won || won[c + v] == position ? widen(gs.v[v]) * widen(xs.v[v]) : A(0);
  }
  return dot;
}

template <typename T, typename IdxT, int VEC>
__global__ void __launch_bounds__(kBlockThreads, kResidentBlocks)
grad_factor(void* __restrict__ result, index_t result_row, int result_is_float,
            const T* __restrict__ grad, index_t grad_row, index_t grad_batch,
            const T* __restrict__ input, index_t input_row, index_t input_batch,
            const IdxT* __restrict__ extrema, index_t extrema_row, index_t extrema_batch,
            const IdxT* __restrict__ divide_offsets, const void* __restrict__ divide_sums,
            int divide_is_float, const T* __restrict__ mean, index_t mean_row, index_t mean_batch,
            const IdxT* __restrict__ offsets, const IdxT* __restrict__ ids,
            const IdxT* __restrict__ order, const IdxT* __restrict__ map, index_t n_edges,
            index_t n_rows, int n_batch, int n_heads, int head_width) {
  using A = accum_t<T>;
  const Edges<IdxT> edges{offsets, ids, order, map};
  const Divisor<T, IdxT> divide{divide_offsets, divide_sums, divide_is_float};
  const NodeArray<const T> g{grad, grad_row, grad_batch}, x{input, input_row, input_batch},
      m{mean, mean_row, mean_batch};
  const NodeArray<const IdxT> won{extrema, extrema_row, extrema_batch};
  const int lanes = blockDim.x, lane = threadIdx.x;
  const unsigned mask = team_mask(lanes);
  const index_t runs = (n_edges + kRunEdges - 1) / kRunEdges;
  for (index_t run = first_item(); run < runs; run += item_stride()) {
    index_t e = run * kRunEdges, row = row_of_edge(offsets, n_rows, e);
    for (const index_t end = min(n_edges, e + kRunEdges); e < end; ++e) {
      while (offsets[row + 1] <= e) ++row;
      const index_t position = edges.position(e), read = edges.row_read(e);
      const A divisor = divide.of(row);
#pragma unroll 1
      for (int head = 0; head < n_heads; ++head) {
        A dot = A(0);
        const int c = head * head_width;
#pragma unroll 1
        for (index_t batch = 0; batch < n_batch; ++batch)
          dot += lane_dot<T, IdxT, VEC>(g.at(batch, row) + c, x.at(batch, read) + c,
                                        extrema ? won.at(batch, row) + c : nullptr, position,
                                        head_width);
#pragma unroll 1
        for (index_t batch = 0; mean && batch < n_batch; ++batch)
          dot -= lane_dot<T, IdxT, VEC>(g.at(batch, row) + c, m.at(batch, row) + c, nullptr, 0,
                                        head_width);
        dot = team_sum(dot, lanes, mask);
        if (lane == 0)
          store_companion<T>(result, result_is_float, position * result_row + head,
                             divisor == A(0) ? A(0) : dot / divisor);
      }
    }
  }
}

}  // namespace edgegrad
