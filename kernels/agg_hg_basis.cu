// agg_hg_basis: R-GCN aggregation with basis regularisation (Schlichtkrull et al. 2018, eq. 2-3).
//
//   k_e  = w_e / n_e               w_e edge weight or 1; n_e in-edges of e's type at its
//   destination,
//                                  or 1 without normalisation
//   y_ib = sum_{e = (j -> i)} k_e W_{t(e) b} x_j           with weights W, blocks b side by side
//   y_ir = sum_{e = (j -> i), t(e) = r} k_e x_j            without, blocks r side by side
//   dx_j = sum_{e = (j -> i)} k_e sum_b W_{t(e) b} G_ib    over the reverse graph (+ own block)
//   dW_rb = sum_{e of type r} k_e <x_j, G_ib>,  dw_e = 1 / n_e sum_b W_{t(e) b} <x_j, G_ib>
//
// Work split: threadIdx.y owns an item (a row, or a piece of a long one, see rows.cuh), threadIdx.x
// owns VEC channels of it; blockIdx.y walks tiles of channels and bases, blockIdx.z the batch.
// Additions follow the order of edges inside an item. Launch: blockDim.x * blockDim.y ==
// kBlockThreads, blockDim.x a power of two up to 32; pointers, row and batch strides and dim are
// multiples of VEC.
#include "common/rows.cuh"
#include "common/team.cuh"
#include "common/vec.cuh"

namespace edgegrad {

// Bases whose sums a thread keeps in registers: 16 accumulators at the widest access. Twice as many
// would halve the gathers of many bases, and leave half the warps to hide them (96 registers).
template <int VEC> constexpr int kBases = VEC >= 8 ? 2 : 4;

// What edges are multiplied by; arrays are in CSC order.
template <typename T, typename IdxT> struct Factors {
  const void *weights, *edge_weight;  // null: absent
  index_t weights_row;
  int weights_are_float, edge_weight_is_float;
  const int* edge_types;
  const IdxT* type_degree;  // null: no normalisation

  using A = accum_t<T>;
  __device__ __forceinline__ A norm(index_t e) const {
    return type_degree ? A(1) / static_cast<A>(type_degree[e]) : A(1);
  }
  __device__ __forceinline__ A edge(index_t e) const {
    return edge_weight ? norm(e) * load_companion<T>(edge_weight, edge_weight_is_float, e)
                       : norm(e);
  }
  __device__ __forceinline__ A weight(index_t type, int b) const {
    return load_companion<T>(weights, weights_are_float, type * weights_row + b);
  }
};

// With weights: rows are destinations.
template <typename T, typename IdxT, int VEC>
__global__ void __launch_bounds__(kBlockThreads, kResidentBlocks)
agg_hg_basis_fwd(T* __restrict__ output, index_t output_row, index_t output_batch,
                 accum_t<T>* __restrict__ partials, const T* __restrict__ input, index_t input_row,
                 index_t input_batch, const void* __restrict__ weights, index_t weights_row,
                 int weights_are_float, const void* __restrict__ edge_weight,
                 int edge_weight_is_float, const IdxT* __restrict__ offsets,
                 const IdxT* __restrict__ indices, const int* __restrict__ edge_types,
                 const IdxT* __restrict__ type_degree, const index_t* __restrict__ piece_row,
                 const index_t* __restrict__ piece_begin, const index_t* __restrict__ piece_end,
                 index_t n_items, index_t limit, int n_batch, int n_bases, int dim) {
  using A = accum_t<T>;
  constexpr int NB = kBases<VEC>;
  const NodeArray<const T> x{input, input_row, input_batch};
  const NodeArray<T> y{output, output_row, output_batch};
  const Factors<T, IdxT> factors{weights,           edge_weight,          weights_row,
                                 weights_are_float, edge_weight_is_float, edge_types,
                                 type_degree};
  const Pieces pieces{piece_row, piece_begin, piece_end, n_items, limit};
  const int channels = blockDim.x * VEC, column_tiles = (dim + channels - 1) / channels;
  const int tiles = column_tiles * ((n_bases + NB - 1) / NB);
  for (int tile = blockIdx.y; tile < tiles; tile += gridDim.y) {
    const int c = tile % column_tiles * channels + threadIdx.x * VEC;
    const int base = tile / column_tiles * NB;
    if (c >= dim) continue;
    for (index_t batch = blockIdx.z; batch < n_batch; batch += gridDim.z)
      for (index_t i = first_item(); i < n_items; i += item_stride()) {
        const Item item = item_at(pieces, offsets, i);
        if (item.begin > item.end) continue;
        A acc[NB][VEC] = {};
        for (index_t e = item.begin; e < item.end; ++e) {
          A features[VEC];
          load_vec<T, VEC>(features, x.at(batch, indices[e]) + c);
          const A k = factors.edge(e);
          const index_t type = edge_types[e];
#pragma unroll
          for (int b = 0; b < NB; ++b) {
            const A kb = base + b < n_bases ? k * factors.weight(type, base + b) : A(0);
#pragma unroll
            for (int v = 0; v < VEC; ++v) acc[b][v] += kb * features[v];
          }
        }
#pragma unroll
        for (int b = 0; b < NB; ++b) {
          if (base + b >= n_bases) continue;
          const index_t column = static_cast<index_t>(base + b) * dim + c;
          if (pieces.row) {
            const index_t width = static_cast<index_t>(n_bases) * dim;
            store_sums(partials + (batch * n_items + i) * width + column, acc[b]);
          } else {
            store_vec<T, VEC>(y.at(batch, i) + column, acc[b]);
          }
        }
      }
  }
}

// Without weights: rows are (destination, type) groups; `order` lists their edges, `location` is
// destination * n_types + type. The norm of a whole group is one factor; pieces leave it to merge.
template <typename T, typename IdxT, int VEC>
__global__ void __launch_bounds__(kBlockThreads, kResidentBlocks)
agg_hg_basis_fwd_by_type(T* __restrict__ output, index_t output_row, index_t output_batch,
                         accum_t<T>* __restrict__ partials, const T* __restrict__ input,
                         index_t input_row, index_t input_batch,
                         const void* __restrict__ edge_weight, int edge_weight_is_float,
                         const IdxT* __restrict__ offsets, const IdxT* __restrict__ indices,
                         const IdxT* __restrict__ order, const index_t* __restrict__ location,
                         const index_t* __restrict__ piece_row,
                         const index_t* __restrict__ piece_begin,
                         const index_t* __restrict__ piece_end, index_t n_items, index_t limit,
                         int n_batch, int n_types, int normalise, int dim) {
  using A = accum_t<T>;
  const NodeArray<const T> x{input, input_row, input_batch};
  const NodeArray<T> y{output, output_row, output_batch};
  const Pieces pieces{piece_row, piece_begin, piece_end, n_items, limit};
  const int channels = blockDim.x * VEC;
  for (int c = blockIdx.y * channels + threadIdx.x * VEC; c < dim; c += gridDim.y * channels)
    for (index_t batch = blockIdx.z; batch < n_batch; batch += gridDim.z)
      for (index_t i = first_item(); i < n_items; i += item_stride()) {
        const Item item = item_at(pieces, offsets, i);
        if (item.begin > item.end) continue;
        A acc[VEC] = {};
        for (index_t at = item.begin; at < item.end; ++at) {
          const index_t e = order[at];
          A features[VEC];
          load_vec<T, VEC>(features, x.at(batch, indices[e]) + c);
          const A k = edge_weight ? load_companion<T>(edge_weight, edge_weight_is_float, e) : A(1);
#pragma unroll
          for (int v = 0; v < VEC; ++v) acc[v] += k * features[v];
        }
        if (pieces.row) {
          store_sums(partials + (batch * n_items + i) * dim + c, acc);
          continue;
        }
        const A scale = normalise ? A(1) / static_cast<A>(item.end - item.begin) : A(1);
        const index_t row = location[i] / n_types, block = location[i] - row * n_types;
#pragma unroll
        for (int v = 0; v < VEC; ++v) acc[v] *= scale;
        store_vec<T, VEC>(y.at(batch, row) + block * dim + c, acc);
      }
}

// What no edge writes: zeros in the first `zero_width` columns, and the own row, copied to the
// columns from `own_column` on.
template <typename T, int VEC>
__global__ void __launch_bounds__(kBlockThreads, kResidentBlocks)
agg_hg_basis_own(T* __restrict__ output, index_t output_row, index_t output_batch,
                 const T* __restrict__ input, index_t input_row, index_t input_batch,
                 index_t n_dst_nodes, int n_batch, index_t zero_width, index_t own_column,
                 int own_width) {
  const NodeArray<const T> x{input, input_row, input_batch};
  const NodeArray<T> y{output, output_row, output_batch};
  const index_t columns = zero_width + own_width, channels = blockDim.x * VEC;
  for (index_t batch = blockIdx.z; batch < n_batch; batch += gridDim.z)
    for (index_t r = first_item(); r < n_dst_nodes; r += item_stride())
      for (index_t c = blockIdx.y * channels + threadIdx.x * VEC; c < columns;
           c += gridDim.y * channels) {
        if (c < zero_width) {
          const accum_t<T> zeros[VEC] = {};
          store_vec<T, VEC>(y.at(batch, r) + c, zeros);
        } else {
          const index_t from = c - zero_width;
          store_whole(y.at(batch, r) + own_column + from,
                      *reinterpret_cast<const Vec<T, VEC>*>(x.at(batch, r) + from));
        }
      }
}

template <typename T, typename IdxT, int VEC>
__global__ void __launch_bounds__(kBlockThreads, kResidentBlocks)
agg_hg_basis_grad_input(T* __restrict__ grad_input, index_t grad_input_row,
                        index_t grad_input_batch, accum_t<T>* __restrict__ partials,
                        const T* __restrict__ grad_output, index_t grad_output_row,
                        index_t grad_output_batch, const void* __restrict__ weights,
                        index_t weights_row, int weights_are_float,
                        const void* __restrict__ edge_weight, int edge_weight_is_float,
                        const IdxT* __restrict__ offsets, const IdxT* __restrict__ dst,
                        const IdxT* __restrict__ position, const int* __restrict__ edge_types,
                        const IdxT* __restrict__ type_degree, const index_t* __restrict__ piece_row,
                        const index_t* __restrict__ piece_begin,
                        const index_t* __restrict__ piece_end, index_t n_items, index_t limit,
                        int n_batch, index_t n_dst_nodes, int n_blocks, int concat_own, int dim) {
  using A = accum_t<T>;
  const NodeArray<const T> g{grad_output, grad_output_row, grad_output_batch};
  const NodeArray<T> dx{grad_input, grad_input_row, grad_input_batch};
  const Factors<T, IdxT> factors{weights,           edge_weight,          weights_row,
                                 weights_are_float, edge_weight_is_float, edge_types,
                                 type_degree};
  const Pieces pieces{piece_row, piece_begin, piece_end, n_items, limit};
  const int channels = blockDim.x * VEC, blocks = weights ? n_blocks : 1;
  for (int c = blockIdx.y * channels + threadIdx.x * VEC; c < dim; c += gridDim.y * channels)
    for (index_t batch = blockIdx.z; batch < n_batch; batch += gridDim.z)
      for (index_t i = first_item(); i < n_items; i += item_stride()) {
        const Item item = item_at(pieces, offsets, i);
        if (item.begin > item.end) continue;
        A acc[VEC] = {};
        // The own block is where a row's sum starts, so it enters once, with the first piece.
        if (concat_own && item.row < n_dst_nodes && item.begin == offsets[item.row])
          load_vec<T, VEC>(acc, g.at(batch, item.row) + static_cast<index_t>(n_blocks) * dim + c);
        for (index_t at = item.begin; at < item.end; ++at) {
          const index_t e = position[at], type = edge_types[e];
          const A k = factors.edge(e);
          const T* from = g.at(batch, dst[at]) + (weights ? 0 : type * dim) + c;
#pragma unroll 4
          for (int b = 0; b < blocks; ++b) {
            A gradient[VEC];
            load_vec<T, VEC>(gradient, from + static_cast<index_t>(b) * dim);
            const A kb = weights ? k * factors.weight(type, b) : k;
#pragma unroll
            for (int v = 0; v < VEC; ++v) acc[v] += kb * gradient[v];
          }
        }
        if (pieces.row) {
          store_sums(partials + (batch * n_items + i) * dim + c, acc);
        } else {
          store_vec<T, VEC>(dx.at(batch, i) + c, acc);
        }
      }
}

// Teams take equal runs of edges, whatever rows those belong to. Each keeps its sums for dW in a
// matrix of its own, which the kernel below adds up in team order.
template <typename T, typename IdxT, int VEC>
__global__ void __launch_bounds__(kBlockThreads, kResidentBlocks)
agg_hg_basis_grad_parameters(accum_t<T>* __restrict__ partials, void* __restrict__ grad_edge_weight,
                             int grad_edge_weight_is_float, const T* __restrict__ grad_output,
                             index_t grad_output_row, index_t grad_output_batch,
                             const T* __restrict__ input, index_t input_row, index_t input_batch,
                             const void* __restrict__ weights, index_t weights_row,
                             int weights_are_float, const void* __restrict__ edge_weight,
                             int edge_weight_is_float, const IdxT* __restrict__ offsets,
                             const IdxT* __restrict__ indices, const int* __restrict__ edge_types,
                             const IdxT* __restrict__ type_degree, index_t n_edges,
                             index_t n_dst_nodes, index_t n_teams, int n_batch, int n_types,
                             int n_bases, int dim) {
  using A = accum_t<T>;
  constexpr int NB = sizeof(A) == 8 ? 2 : 4;
  const index_t team = first_item();
  if (team >= n_teams) return;
  const NodeArray<const T> g{grad_output, grad_output_row, grad_output_batch};
  const NodeArray<const T> x{input, input_row, input_batch};
  const Factors<T, IdxT> factors{weights,           edge_weight,          weights_row,
                                 weights_are_float, edge_weight_is_float, edge_types,
                                 type_degree};
  const int lanes = blockDim.x, lane = threadIdx.x, blocks = weights ? n_bases : 1;
  const unsigned mask = team_mask(lanes);
  const index_t size = static_cast<index_t>(n_types) * blocks;
  A* sums = partials ? partials + team * size : nullptr;
  // A sum is read and written by the one lane b % lanes, which also clears it.
  for (index_t t = 0; sums && t < n_types; ++t)
    for (int b = lane; b < blocks; b += lanes) sums[t * blocks + b] = A(0);
  const index_t begin = n_edges / n_teams * team + min(team, n_edges % n_teams);
  const index_t end = begin + n_edges / n_teams + (team < n_edges % n_teams ? 1 : 0);
  if (begin == end) return;
  for (index_t e = begin, dst = row_of_edge(offsets, n_dst_nodes, begin); e < end; ++e) {
    while (offsets[dst + 1] <= e) ++dst;
    const index_t src = indices[e], type = edge_types[e];
    const A k = factors.edge(e);
    A total = A(0);
    for (int base = 0; base < blocks; base += NB) {
      A q[NB] = {};
      for (index_t batch = 0; batch < n_batch; ++batch) {
        const T* from = g.at(batch, dst) + (weights ? base : type) * dim;
#pragma unroll 1
        for (int c = lane * VEC; c < dim; c += lanes * VEC) {
          A features[VEC];
          load_vec<T, VEC>(features, x.at(batch, src) + c);
#pragma unroll
          for (int b = 0; b < NB; ++b) {
            if (base + b >= blocks) continue;
            A gradient[VEC];
            load_vec<T, VEC>(gradient, from + static_cast<index_t>(b) * dim + c);
#pragma unroll
            for (int v = 0; v < VEC; ++v) q[b] += features[v] * gradient[v];
          }
        }
      }
#pragma unroll
      for (int b = 0; b < NB; ++b) {
        if (base + b >= blocks) continue;
        q[b] = team_sum(q[b], lanes, mask);
        total += weights ? factors.weight(type, base + b) * q[b] : q[b];
        if (sums && (base + b) % lanes == lane) sums[type * blocks + base + b] += k * q[b];
      }
    }
    if (grad_edge_weight && lane == 0)
      store_companion<T>(grad_edge_weight, grad_edge_weight_is_float, e, factors.norm(e) * total);
  }
}

// grad_weights[r, b] = sum over teams, eight strands of them added in a fixed order.
// Launch: blockDim (32, kBlockThreads / 32), one thread column per entry.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads, kResidentBlocks)
agg_hg_basis_grad_weights(void* __restrict__ grad_weights, index_t grad_weights_row, int is_float,
                          const accum_t<T>* __restrict__ partials, index_t n_teams, int n_types,
                          int n_bases) {
  using A = accum_t<T>;
  constexpr int kStrands = kBlockThreads / 32;
  __shared__ A strands[kStrands][33];
  const index_t size = static_cast<index_t>(n_types) * n_bases;
  const index_t tiles = (size + 31) / 32;
  for (index_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const index_t i = tile * 32 + threadIdx.x;
    A sum = A(0);
    if (i < size)
#pragma unroll 4
      for (index_t t = threadIdx.y; t < n_teams; t += kStrands) sum += partials[t * size + i];
    strands[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y == 0 && i < size) {
      for (int s = 1; s < kStrands; ++s) sum += strands[s][threadIdx.x];
      store_companion<T>(grad_weights, is_float, i / n_bases * grad_weights_row + i % n_bases, sum);
    }
    __syncthreads();
  }
}

}  // namespace edgegrad
