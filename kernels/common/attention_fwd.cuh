// Attention, forward; see attention.cuh.
#pragma once
#include "common/attention.cuh"

namespace edgegrad {

// One head of a row, or of a piece of one, walked once: softmax and sum of values together.
template <typename T, int VEC, typename Score> struct ForwardWalk {
  using A = accum_t<T>;
  const Attention<T>& p;
  const Lane& t;
  Channels<A, VEC> own;

  __device__ __forceinline__ ForwardWalk(const Attention<T>& attention, const Lane& lane)
      : p(attention), t(lane) {}

  __device__ __forceinline__ void start(index_t row, int h) {
    own_row<T, VEC, Score>(p, t, h, p.dst.at(0, row) + static_cast<index_t>(h) * p.width, own.y,
                           own.w);
  }

  // The logit of an edge, -inf if it is masked; leaves the source's own channels in `own`.
  __device__ __forceinline__ A logit(index_t e, index_t j, index_t row, index_t id, int h) {
    const A bias = p.edge_bias(id, h);
    if (bias == minus_infinity<A>()) return bias;
    if constexpr (!Score::kPerHead) {
      const index_t at = static_cast<index_t>(h) * p.width + t.channel;
      load_end<T, VEC>(own.x, p.src, j, at, t.channel < p.width);
      load_end<T, VEC>(own.f, p.edge, id, at, t.channel < p.width);
    }
    const A sum = raw_logit<T, VEC, Score>(p, t, j, row, id, h, own);
    return Score::template logit<A>(sum, p.activation, p.alpha).value + bias;
  }

  __device__ __forceinline__ void
  run(const Item& item, int h, SoftmaxPart<A>& softmax, A (&acc)[VEC]) {
    start(item.row, h);
    for (index_t e = item.begin; e < item.end; ++e) {
      const index_t j = p.indices[e], id = p.id(e);
      const A l = logit(e, j, item.row, id, h);
      if (l == minus_infinity<A>()) continue;
      A v[VEC];
      const index_t at = static_cast<index_t>(h) * p.value_width + t.channel;
      load_end<T, VEC>(v, p.value, j, at, t.channel < p.value_width);
      if constexpr (Score::kEdgeInValue) {
#pragma unroll
        for (int i = 0; i < VEC; ++i) v[i] += own.f[i];
      }
      if (l > softmax.max) {
        const A scale = softmax_term(softmax.max, l);
        softmax.max = l;
        softmax.sum *= scale;
#pragma unroll
        for (int i = 0; i < VEC; ++i) acc[i] *= scale;
      }
      const A term = ScalarExp::of(l - softmax.max);
      softmax.sum += term;
      const A a = term * p.dropout.template factor<A>(id, h);
#pragma unroll
      for (int i = 0; i < VEC; ++i) acc[i] += a * v[i];
    }
  }
};

// Writes the output and, if wanted, the softmax; pieces leave both in `partials`: values of every
// piece and head, then pairs of maximum and sum.
template <typename T, int VEC, typename Score>
__global__ void __launch_bounds__(kBlockThreads, Score::kForwardBlocks)
attention_fwd(T* __restrict__ output, index_t output_row, accum_t<T>* __restrict__ stats,
              index_t stats_plane, index_t stats_row, accum_t<T>* __restrict__ partials,
              const index_t* __restrict__ piece_row, const index_t* __restrict__ piece_begin,
              const index_t* __restrict__ piece_end, index_t n_items, index_t limit,
              EG_ATTENTION_PARAMETERS(T)) {
  using A = accum_t<T>;
  const Attention<T> p = EG_ATTENTION(T);
  const Ids starts{offsets, wide_ids};
  const Pieces pieces{piece_row, piece_begin, piece_end, n_items, limit};
  // A mean over heads is made by one team for all of them.
  const int per_unit = concat || pieces.row ? heads : 1;
  const int tiles = tiles_of<VEC>(width > value_width ? width : value_width);
  for (int tile = blockIdx.y; tile < tiles; tile += gridDim.y) {
    const Lane t = lane_of<VEC>(tile);
    ForwardWalk<T, VEC, Score> walk(p, t);
    for (index_t i = first_item(); i < n_items * per_unit; i += item_stride()) {
      const HeadItem at = head_item(i, per_unit);
      const Item item = item_at(pieces, starts, at.unit);
      if (item.begin > item.end) continue;
      A total[VEC] = {};
#pragma unroll 1
      for (int h = at.head; h < at.head + heads / per_unit; ++h) {
        auto softmax = SoftmaxPart<A>::none();
        A acc[VEC] = {};
        walk.run(item, h, softmax, acc);
        if (pieces.row) {
          if (t.channel < value_width) store_sums(partials + i * value_width + t.channel, acc);
          if (tile == 0 && t.lane == 0) {
            A* pair = partials + n_items * heads * value_width + 2 * i;
            pair[0] = softmax.max;
            pair[1] = softmax.sum;
          }
          continue;
        }
        const A scale = softmax.inverse() / (concat ? A(1) : static_cast<A>(heads));
#pragma unroll
        for (int v = 0; v < VEC; ++v) total[v] += acc[v] * scale;
        if (stats && tile == 0 && t.lane == 0) {
          stats[item.row * stats_row + h] = softmax.max;
          stats[stats_plane + item.row * stats_row + h] = softmax.sum;
        }
      }
      const index_t column = (concat ? static_cast<index_t>(at.head) * value_width : 0) + t.channel;
      if (!pieces.row && t.channel < value_width)
        store_vec<T, VEC>(output + item.row * output_row + column, total);
    }
  }
}

// attention[h, id] = m_e alpha_e, by the maximum and sum that forward found.
template <typename T, int VEC, typename Score>
__global__ void __launch_bounds__(kBlockThreads, Score::kForwardBlocks)
attention_coefficients(void* __restrict__ attention, index_t attention_row, int is_double,
                       const accum_t<T>* __restrict__ stats, index_t stats_plane, index_t stats_row,
                       const index_t* __restrict__ piece_row,
                       const index_t* __restrict__ piece_begin,
                       const index_t* __restrict__ piece_end, index_t n_items, index_t limit,
                       EG_ATTENTION_PARAMETERS(T)) {
  using A = accum_t<T>;
  const Attention<T> p = EG_ATTENTION(T);
  const Ids starts{offsets, wide_ids};
  const Pieces pieces{piece_row, piece_begin, piece_end, n_items, limit};
  const Lane t = lane_of<VEC>(0);
  ForwardWalk<T, VEC, Score> walk(p, t);
  for (index_t i = first_item(); i < n_items * heads; i += item_stride()) {
    const HeadItem at = head_item(i, heads);
    const Item item = item_at(pieces, starts, at.unit);
    if (item.begin > item.end) continue;
    const int h = at.head;
    const A max = stats[item.row * stats_row + h];
    const A inverse = SoftmaxPart<A>{max, stats[stats_plane + item.row * stats_row + h]}.inverse();
    walk.start(item.row, h);
    for (index_t e = item.begin; e < item.end; ++e) {
      const index_t id = p.id(e);
      const A l = walk.logit(e, p.indices[e], item.row, id, h);
      const A a = softmax_term(l, max) * inverse * p.dropout.template factor<A>(id, h);
      if (t.lane != 0) continue;
      const index_t place = h * attention_row + id;
      if (is_double) {
        static_cast<double*>(attention)[place] = a;
      } else {
        static_cast<float*>(attention)[place] = static_cast<float>(a);
      }
    }
  }
}

}  // namespace edgegrad
