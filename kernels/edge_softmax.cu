// edge_softmax: softmax of edge logits over the edges of each row, by head.
//
//   y_e  = exp(x_e - m) / sum_k exp(x_k - m),  m = max_k x_k     over the edges k of e's row
//   dx_e = y_e (dy_e - sum_k y_k dy_k)
//
// A row is a destination, or the edges of one type that enter one; `order` then lists its edges.
// Work split: threadIdx.y owns an item (a row, or a piece of a long one, see rows.cuh), whose edges
// and heads share the threads of threadIdx.x: `head_lanes` of them (a power of two) take heads, the
// others further edges; blockIdx.y walks groups of heads. Edges are read again rather than kept.
// Long rows take three launches: parts of pieces, their merge in piece order, edges of pieces.
// Launch: blockDim.x * blockDim.y == kBlockThreads, blockDim.x a power of two up to 32.
#include "common/rows.cuh"
#include "common/softmax.h"
#include "common/team.cuh"
#include "common/vec.cuh"

namespace edgegrad {

enum Phase { kWhole, kParts, kEdges };

// The edges and the head of one thread.
struct Place {
  int lane_edge, step;
  index_t head;
  bool used;
  unsigned mask;
};

__device__ __forceinline__ Place place_of(int head_lanes, index_t group, index_t n_heads) {
  const int lane = threadIdx.x;
  const index_t head = group * head_lanes + lane % head_lanes;
  return {lane / head_lanes, static_cast<int>(blockDim.x) / head_lanes, head, head < n_heads,
          team_mask(blockDim.x)};
}

template <typename T> struct EdgeArray {  // edges, heads
  T* data;
  index_t row;
  __device__ __forceinline__ T* at(index_t e, index_t head) const { return data + e * row + head; }
};

template <typename T>
__global__ void __launch_bounds__(kBlockThreads, kResidentBlocks)
edge_softmax_fwd(T* __restrict__ output, index_t output_row, const T* __restrict__ logits,
                 index_t logits_row, SoftmaxPart<accum_t<T>>* __restrict__ parts,
                 const void* __restrict__ row_offsets, const void* __restrict__ order, int wide,
                 const index_t* __restrict__ piece_row, const index_t* __restrict__ piece_begin,
                 const index_t* __restrict__ piece_end, index_t n_items, index_t limit, int phase,
                 int head_lanes, index_t n_heads) {
  using A = accum_t<T>;
  const EdgeArray<const T> x{logits, logits_row};
  const EdgeArray<T> y{output, output_row};
  const Ids offsets{row_offsets, wide}, positions{order, wide};
  const Pieces pieces{piece_row, piece_begin, piece_end, n_items, limit};
  const auto max_of = [](A a, A b) { return greater(a, b); };
  const auto sum_of = [](A a, A b) { return a + b; };
  const index_t groups = (n_heads + head_lanes - 1) / head_lanes;
  for (index_t group = blockIdx.y; group < groups; group += gridDim.y) {
    const Place at = place_of(head_lanes, group, n_heads);
    for (index_t i = first_item(); i < n_items; i += item_stride()) {
      const Item item = item_at(pieces, offsets, i);
      if (item.begin >= item.end) continue;
      const index_t first = item.begin + at.lane_edge, end = at.used ? item.end : first;
      const auto logit = [&](index_t e) { return widen(*x.at(order ? positions[e] : e, at.head)); };
      auto part = SoftmaxPart<A>::none();
      if (phase == kEdges) {
        if (at.used) part = parts[i * n_heads + at.head];
      } else {
        for (index_t e = first; e < end; e += at.step) part.max = greater(part.max, logit(e));
        part.max = team_join(part.max, blockDim.x, head_lanes, at.mask, max_of);
        for (index_t e = first; e < end; e += at.step)
          part.sum += exp_of(logit(e) - shift_of(part.max));
        part.sum = team_join(part.sum, blockDim.x, head_lanes, at.mask, sum_of);
      }
      if (phase == kParts) {
        if (at.used && at.lane_edge == 0) parts[i * n_heads + at.head] = part;
        continue;
      }
      const A shift = shift_of(part.max), factor = A(1) / part.sum;
      for (index_t e = first; e < end; e += at.step)
        *y.at(order ? positions[e] : e, at.head) = narrow<T>(exp_of(logit(e) - shift) * factor);
    }
  }
}

template <typename T>
__global__ void __launch_bounds__(kBlockThreads, kResidentBlocks)
edge_softmax_bwd(T* __restrict__ grad_logits, index_t grad_logits_row,
                 const T* __restrict__ grad_output, index_t grad_output_row,
                 const T* __restrict__ output, index_t output_row,
                 SumPart<accum_t<T>>* __restrict__ parts, const void* __restrict__ row_offsets,
                 const void* __restrict__ order, int wide, const index_t* __restrict__ piece_row,
                 const index_t* __restrict__ piece_begin, const index_t* __restrict__ piece_end,
                 index_t n_items, index_t limit, int phase, int head_lanes, index_t n_heads) {
  using A = accum_t<T>;
  const EdgeArray<T> dx{grad_logits, grad_logits_row};
  const EdgeArray<const T> dy{grad_output, grad_output_row}, y{output, output_row};
  const Ids offsets{row_offsets, wide}, positions{order, wide};
  const Pieces pieces{piece_row, piece_begin, piece_end, n_items, limit};
  const auto sum_of = [](A a, A b) { return a + b; };
  const index_t groups = (n_heads + head_lanes - 1) / head_lanes;
  for (index_t group = blockIdx.y; group < groups; group += gridDim.y) {
    const Place at = place_of(head_lanes, group, n_heads);
    for (index_t i = first_item(); i < n_items; i += item_stride()) {
      const Item item = item_at(pieces, offsets, i);
      if (item.begin >= item.end) continue;
      const index_t first = item.begin + at.lane_edge, end = at.used ? item.end : first;
      A sum = A(0);
      if (phase == kEdges) {
        if (at.used) sum = parts[i * n_heads + at.head].sum;
      } else {
        for (index_t e = first; e < end; e += at.step) {
          const index_t p = order ? positions[e] : e;
          sum += widen(*y.at(p, at.head)) * widen(*dy.at(p, at.head));
        }
        sum = team_join(sum, blockDim.x, head_lanes, at.mask, sum_of);
      }
      if (phase == kParts) {
        if (at.used && at.lane_edge == 0) parts[i * n_heads + at.head].sum = sum;
        continue;
      }
      for (index_t e = first; e < end; e += at.step) {
        const index_t p = order ? positions[e] : e;
        *dx.at(p, at.head) =
            narrow<T>(widen(*y.at(p, at.head)) * (widen(*dy.at(p, at.head)) - sum));
      }
    }
  }
}

// Parts of another lane of the team.
template <typename A>
__device__ __forceinline__ SoftmaxPart<A> from_lane(unsigned mask, SoftmaxPart<A> part, int lane) {
  return {__shfl_sync(mask, part.max, lane), __shfl_sync(mask, part.sum, lane)};
}
template <typename A>
__device__ __forceinline__ SumPart<A> from_lane(unsigned mask, SumPart<A> part, int lane) {
  return {__shfl_sync(mask, part.sum, lane)};
}

// Joins the parts of every long row and leaves the whole with each of its pieces. A warp owns a
// head of a row; its lanes take every 32nd piece in order, and are joined in a fixed tree.
template <typename Part>
__global__ void __launch_bounds__(kBlockThreads, kResidentBlocks)
edge_softmax_merge(Part* __restrict__ parts, const index_t* __restrict__ first_piece,
                   index_t n_long, index_t n_heads) {
  const int lanes = blockDim.x, lane = threadIdx.x;
  const unsigned mask = team_mask(lanes);
  for (index_t h = blockIdx.y; h < n_heads; h += gridDim.y)
    for (index_t l = first_item(); l < n_long; l += item_stride()) {
      const index_t first = first_piece[l] + lane, end = first_piece[l + 1];
      Part whole = Part::none();
#pragma unroll 1
      for (index_t p = first; p < end; p += lanes) whole = merge(whole, parts[p * n_heads + h]);
#pragma unroll 1
      for (int step = lanes / 2; step > 0; step /= 2)
        whole = merge(whole, from_lane(mask, whole, lane ^ step));
      // Two lanes may round a join differently, since its operands are exchanged.
      whole = from_lane(mask, whole, 0);
#pragma unroll 1
      for (index_t p = first; p < end; p += lanes) parts[p * n_heads + h] = whole;
    }
}

}  // namespace edgegrad
