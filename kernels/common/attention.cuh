// Graph attention, one gather per edge in each direction; mha_*.cu say what a logit is.
//
//   edge e = (j -> i): logit l_e = score(x_j, y_i, f_e) + bias, alpha = softmax of l over i's edges
//   o_i = sum_e m_e alpha_e v_j, m the dropout factor; per head, set side by side or averaged
//
// Backward, g the gradient of a head's output, gamma that of its coefficients:
//
//   d_e = m_e (<g_i, v_j> + gamma_e), delta_e = alpha_e (d_e - mean_i), mean_i = sum_e alpha_e d_e
//   dv_j = sum_e m_e alpha_e g_i, and every input of the score gets delta_e times its derivative
//
// All that is kept of a softmax is its maximum and sum. Backward goes once over destinations, for
// the mean, and for sums of alpha (d - shift) r and alpha r, r the derivative of a logit by its
// destination: dy_i = (first) - mean (second). The shift is a constant of the row near the mean, so
// that what all features have in common does not end up in rounding. It goes once over sources on
// the reverse graph, for all that belongs to a source or to an edge.
//
// Work split: a team of threadIdx.x owns an item, which is a head of a row or of a piece of a long
// row (rows.cuh); neighbouring teams own neighbouring heads and read neighbouring memory. A thread
// owns VEC channels of the item's tile (blockIdx.y); heads wider than a tile have their products
// made in every tile. Additions follow the order of edges. Launch: blockDim.x * blockDim.y ==
// kBlockThreads, blockDim.x a power of two up to 32; pointers, row strides and head widths are
// multiples of VEC.
#pragma once
#include "common/activation.h"
#include "common/dropout.h"
#include "common/rows.cuh"
#include "common/softmax.h"
#include "common/team.cuh"
#include "common/vec.cuh"

namespace edgegrad {

// Walks over edges keep a row of each end in registers: fewer blocks than elsewhere, without
// spills.
constexpr int kBackwardBlocks = 2;  // at most 128 registers; forward: by the score

// Softmax and gradient of a destination and head, as the pass over sources reads it: in one access.
template <typename A> struct alignas(4 * sizeof(A)) DstFields {
  A max, inverse, shift, mean;
};

// An array that is written in features' type or in the accumulator's.
template <typename T> struct Gradient {
  void* data;  // null: not wanted
  index_t row;
  int wide;  // accumulators

  using A = accum_t<T>;
  template <int N> __device__ __forceinline__ void
  store(index_t r, index_t c, const A (&x)[N]) const {
    if (sizeof(T) == sizeof(A) || wide) {
      store_sums(static_cast<A*>(data) + r * row + c, x);
    } else {
      store_vec<T, N>(static_cast<T*>(data) + r * row + c, x);
    }
  }
  __device__ __forceinline__ void store(index_t r, index_t c, A x) const {
    if (wide) {
      static_cast<A*>(data)[r * row + c] = x;
    } else {
      static_cast<T*>(data)[r * row + c] = narrow<T>(x);
    }
  }
};

// What every pass reads.
template <typename T> struct Attention {
  using A = accum_t<T>;

  NodeArray<const T> src, dst, value, edge;  // edge.data null: no edge features
  const void* weights;
  int weights_are_float;
  const void* bias;  // null: none
  index_t bias_row;
  int bias_is_float;
  const A *src_scores, *dst_scores;  // nodes x heads, where a score is of one end
  Dropout dropout;
  Ids indices, edge_ids;  // edge_ids.data null: ids are positions
  int heads, width, value_width, edge_width, concat, activation;
  A alpha;

  __device__ __forceinline__ index_t id(index_t e) const { return edge_ids.data ? edge_ids[e] : e; }
  __device__ __forceinline__ A edge_bias(index_t id, int h) const {
    return bias ? load_companion<T>(bias, bias_is_float, id * bias_row + h) : A(0);
  }
  __device__ __forceinline__ A weight(index_t i) const {
    return load_companion<T>(weights, weights_are_float, i);
  }
  template <int VEC>
  __device__ __forceinline__ void load_weights(A (&to)[VEC], index_t at, bool inside) const {
#pragma unroll
    for (int v = 0; v < VEC; ++v) to[v] = inside ? weight(at + v) : A(0);
  }
};

// The parameters of every pass; kernels take no structs.
#define EG_ATTENTION_PARAMETERS(T)                                                                 \
  const T *__restrict__ src, index_t src_row, const T *__restrict__ dst, index_t dst_row,          \
      const T *__restrict__ value, index_t value_row, const T *__restrict__ edge,                  \
      index_t edge_row, const void *__restrict__ weights, int weights_are_float,                   \
      const void *__restrict__ bias, index_t bias_row, int bias_is_float,                          \
      const accum_t<T>*__restrict__ src_scores, const accum_t<T>*__restrict__ dst_scores,          \
      int dropout_kind, const void *__restrict__ dropout_mask, index_t dropout_mask_row,           \
      double dropout_scale, unsigned long long dropout_seed, unsigned long long dropout_threshold, \
      const void *__restrict__ offsets, const void *__restrict__ indices,                          \
      const void *__restrict__ edge_ids, int wide_ids, int heads, int width, int value_width,      \
      int edge_width, int concat, int activation, double alpha

#define EG_ATTENTION(T)                                                                           \
  Attention<T> {                                                                                  \
    {src, src_row, 0}, {dst, dst_row, 0}, {value, value_row, 0}, {edge, edge_row, 0}, weights,    \
        weights_are_float, bias, bias_row, bias_is_float, src_scores, dst_scores,                 \
        {dropout_kind,  dropout_mask, dropout_mask_row,                                           \
         dropout_scale, dropout_seed, dropout_threshold},                                         \
        {indices, wide_ids}, {edge_ids, wide_ids}, heads, width, value_width, edge_width, concat, \
        activation, static_cast<accum_t<T>>(alpha)                                                \
  }

template <typename T, int VEC>
__device__ __forceinline__ void load_or_zero(accum_t<T> (&to)[VEC], const T* from, bool inside) {
  if (inside) {
    load_vec<T, VEC>(to, from);
  } else {
#pragma unroll
    for (int v = 0; v < VEC; ++v) to[v] = accum_t<T>(0);
  }
}

// The team that runs, and the channels of a head that its thread owns.
struct Lane {
  int lanes, lane, channel;
  unsigned mask;
};
template <int VEC> __device__ __forceinline__ Lane lane_of(int tile) {
  const int lanes = blockDim.x, lane = threadIdx.x;
  return {lanes, lane, (tile * lanes + lane) * VEC, team_mask(lanes)};
}
template <int VEC> __device__ __forceinline__ int tiles_of(int width) {
  const int channels = blockDim.x * VEC;
  return width <= channels ? 1 : (width + channels - 1) / channels;
}

// Item i of units x heads.
struct HeadItem {
  index_t unit;
  int head;
};
__device__ __forceinline__ HeadItem head_item(index_t i, int heads) {
  // 64-bit division is many instructions; few graphs need it.
  const index_t unit =
      i >> 32 ? i / heads : static_cast<unsigned>(i) / static_cast<unsigned>(heads);
  return {unit, static_cast<int>(i - unit * heads)};
}

// The ends of an edge in the channels that a thread owns.
template <typename A, int VEC> struct Channels {
  A x[VEC], y[VEC], f[VEC], w[VEC];
};

// <upstream, value> of an edge: the own channels are in registers, others are read.
template <typename T, int VEC>
__device__ __forceinline__ accum_t<T>
dot_rows(const Lane& t, int width, const T* a, const T* b, const T* more) {
  using A = accum_t<T>;
  A sum = A(0);
#pragma unroll 1
  for (int c = t.lane * VEC; c < width; c += t.lanes * VEC) {
    A x[VEC], y[VEC];
    load_vec<T, VEC>(x, a + c);
    load_vec<T, VEC>(y, b + c);
    if (more) {
      A f[VEC];
      load_vec<T, VEC>(f, more + c);
#pragma unroll
      for (int v = 0; v < VEC; ++v) y[v] += f[v];
    }
#pragma unroll
    for (int v = 0; v < VEC; ++v) sum += x[v] * y[v];
  }
  return sum;
}

// Reads what is constant along a row into `own`: weights, and the row of one end.
template <typename T, int VEC, typename Score>
__device__ __forceinline__ void own_row(const Attention<T>& p, const Lane& t, int h, const T* row,
                                        accum_t<T> (&to)[VEC], accum_t<T> (&w)[VEC]) {
  if constexpr (!Score::kPerHead) {
    const bool inside = t.channel < p.width;
    load_or_zero<T, VEC>(to, row + t.channel, inside);
    if constexpr (Score::kHasWeights)
      p.template load_weights<VEC>(w, static_cast<index_t>(h) * p.width + t.channel, inside);
  }
}

// The logit's sum over channels, in every thread of the team. `own` has the edge's rows filled in.
template <typename T, int VEC, typename Score>
__device__ __forceinline__ accum_t<T>
raw_logit(const Attention<T>& p, const Lane& t, index_t j, index_t i, index_t id, int h,
          const Channels<accum_t<T>, VEC>& own) {
  using A = accum_t<T>;
  A sum = A(0);
  if constexpr (Score::kPerHead) {
    if (p.edge.data) {
      const T* f = p.edge.at(0, id) + static_cast<index_t>(h) * p.edge_width;
      const index_t w =
          2 * static_cast<index_t>(p.heads) * p.width + static_cast<index_t>(h) * p.edge_width;
      for (int c = t.lane * VEC; c < p.edge_width; c += t.lanes * VEC) {
        A features[VEC];
        load_vec<T, VEC>(features, f + c);
#pragma unroll
        for (int v = 0; v < VEC; ++v) sum += features[v] * p.weight(w + c + v);
      }
      sum = team_sum(sum, t.lanes, t.mask);
    }
    return sum + p.src_scores[j * p.heads + h] + p.dst_scores[i * p.heads + h];
  } else {
    if (t.channel < p.width) sum = Score::template sum<A, VEC>(own, p.activation, p.alpha);
    if (p.width > t.lanes * VEC) {
      const index_t at = static_cast<index_t>(h) * p.width;
#pragma unroll 1
      for (int c = t.lane * VEC; c < p.width; c += t.lanes * VEC) {
        if (c == t.channel) continue;
        Channels<A, VEC> other;
        load_vec<T, VEC>(other.x, p.src.at(0, j) + at + c);
        load_vec<T, VEC>(other.y, p.dst.at(0, i) + at + c);
        load_or_zero<T, VEC>(other.f, p.edge.data ? p.edge.at(0, id) + at + c : nullptr,
                             p.edge.data);
        if constexpr (Score::kHasWeights) p.template load_weights<VEC>(other.w, at + c, true);
        sum += Score::template sum<A, VEC>(other, p.activation, p.alpha);
      }
    }
    return team_sum(sum, t.lanes, t.mask);
  }
}

// Fills in the edge's own channels on the side that changes along a row.
template <typename T, int VEC>
__device__ __forceinline__ void load_end(accum_t<T> (&to)[VEC], const NodeArray<const T>& rows,
                                         index_t r, index_t at, bool inside) {
  load_or_zero<T, VEC>(to, rows.data ? rows.at(0, r) + at : nullptr, inside && rows.data);
}

}  // namespace edgegrad
