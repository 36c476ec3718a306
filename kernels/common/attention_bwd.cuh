// Attention, backward; see attention.cuh.
#pragma once
#include "common/attention.cuh"

namespace edgegrad {

// What backward reads beside the arrays of every pass.
template <typename T> struct Upstream {
  using A = accum_t<T>;
  NodeArray<const T> gradient;
  const void* attention;  // gradient of the coefficients; null: none
  index_t attention_row;
  int attention_is_double;

  __device__ __forceinline__ A of_coefficient(index_t id, int h) const {
    if (!attention) return A(0);
    const index_t at = h * attention_row + id;
    return attention_is_double ? static_cast<A>(static_cast<const double*>(attention)[at])
                               : static_cast<A>(static_cast<const float*>(attention)[at]);
  }
};

// What an edge takes part with in both passes.
template <typename T, int VEC, typename Score> struct BackwardWalk {
  using A = accum_t<T>;
  const Attention<T>& p;
  const Upstream<T>& up;
  const Lane& t;
  Channels<A, VEC> own;
  A g[VEC];  // gradient of the own channels of values

  __device__ __forceinline__ BackwardWalk(const Attention<T>& attention,
                                          const Upstream<T>& upstream, const Lane& lane)
      : p(attention), up(upstream), t(lane) {}

  __device__ __forceinline__ A share() const {
    return p.concat ? A(1) : A(1) / static_cast<A>(p.heads);
  }
  __device__ __forceinline__ const T* gradient_of(index_t row, int h) const {
    return up.gradient.at(0, row) + (p.concat ? static_cast<index_t>(h) * p.value_width : 0);
  }
  __device__ __forceinline__ void load_gradient(index_t row, int h) {
    load_or_zero<T, VEC>(g, gradient_of(row, h) + t.channel, t.channel < p.value_width);
#pragma unroll
    for (int v = 0; v < VEC; ++v) g[v] *= share();
  }

  __device__ __forceinline__ const T* edge_row(index_t id, int h) const {
    return Score::kEdgeInValue && p.edge.data
               ? p.edge.at(0, id) + static_cast<index_t>(h) * p.value_width
               : nullptr;
  }

  // m_e (<g_i, v_j> + gamma_e)
  __device__ __forceinline__ A coefficient_gradient(index_t j, index_t i, index_t id, int h,
                                                    A factor) const {
    const T* value = p.value.at(0, j) + static_cast<index_t>(h) * p.value_width;
    A sum = dot_rows<T, VEC>(t, p.value_width, gradient_of(i, h), value, edge_row(id, h));
    sum = team_sum(sum, t.lanes, t.mask) * share();
    return factor * (sum + up.of_coefficient(id, h));
  }
};

// Any constant near a row's mean gradient: <g, output>, or without the output <g, first value>.
template <typename T, int VEC, typename Score>
__device__ __forceinline__ accum_t<T>
row_shift(const BackwardWalk<T, VEC, Score>& walk, const T* output, index_t output_row,
          index_t first, index_t last, index_t row, int h) {
  using A = accum_t<T>;
  const Attention<T>& p = walk.p;
  if (first == last) return A(0);
  const index_t column = static_cast<index_t>(h) * p.value_width;
  const T* near = output ? output + row * output_row + (p.concat ? column : 0)
                         : p.value.at(0, p.indices[first]) + column;
  const A sum = dot_rows<T, VEC>(walk.t, p.value_width, walk.gradient_of(row, h), near, nullptr);
  const A shift = team_sum(sum, walk.t.lanes, walk.t.mask) * walk.share();
  return shift - shift == A(0) ? shift : A(0);  // a masked first edge may hold anything
}

// By destination: fields, and the gradient of the destination, `directions` numbers per head.
// Pieces leave `partials`: sums with and without the gradients, then the means.
template <typename T, int VEC, typename Score>
__global__ void __launch_bounds__(kBlockThreads, kBackwardBlocks)
attention_bwd_dst(void* __restrict__ grad_dst, index_t grad_dst_row, int grad_dst_is_wide,
                  DstFields<accum_t<T>>* __restrict__ fields, accum_t<T>* __restrict__ partials,
                  const T* __restrict__ grad_output, index_t grad_output_row,
                  const T* __restrict__ output, index_t output_row,
                  const accum_t<T>* __restrict__ stats, index_t stats_plane, index_t stats_row,
                  const void* __restrict__ grad_attention, index_t grad_attention_row,
                  int grad_attention_is_double, const index_t* __restrict__ piece_row,
                  const index_t* __restrict__ piece_begin, const index_t* __restrict__ piece_end,
                  index_t n_items, index_t limit, EG_ATTENTION_PARAMETERS(T)) {
  using A = accum_t<T>;
  constexpr int R = Score::kPerHead ? 1 : VEC;
  const Attention<T> p = EG_ATTENTION(T);
  const Upstream<T> up{{grad_output, grad_output_row, 0},
                       grad_attention,
                       grad_attention_row,
                       grad_attention_is_double};
  const Ids starts{offsets, wide_ids};
  const Pieces pieces{piece_row, piece_begin, piece_end, n_items, limit};
  const Gradient<T> gradient{grad_dst, grad_dst_row, grad_dst_is_wide};
  const int directions = Score::kPerHead ? 1 : width;
  const int tiles = Score::kPerHead ? 1 : tiles_of<VEC>(width);
  for (int tile = blockIdx.y; tile < tiles; tile += gridDim.y) {
    const Lane t = lane_of<VEC>(tile);
    BackwardWalk<T, VEC, Score> walk(p, up, t);
    const bool inside = Score::kPerHead ? t.lane == 0 : t.channel < width;
    const int channel = Score::kPerHead ? 0 : t.channel;
    for (index_t i = first_item(); i < n_items * heads; i += item_stride()) {
      const HeadItem at = head_item(i, heads);
      const Item item = item_at(pieces, starts, at.unit);
      if (item.begin > item.end) continue;
      const int h = at.head;
      const index_t row = item.row, first = starts[row], last = starts[row + 1];
      DstFields<A> f;
      f.max = stats[row * stats_row + h];
      f.inverse = SoftmaxPart<A>{f.max, stats[stats_plane + row * stats_row + h]}.inverse();
      f.shift = row_shift(walk, output, output_row, first, last, row, h);
      f.mean = A(0);
      A with[R] = {}, without[R] = {};
      own_row<T, VEC, Score>(p, t, h, p.dst.at(0, row) + static_cast<index_t>(h) * width,
                             walk.own.y, walk.own.w);
      for (index_t e = item.begin; e < item.end; ++e) {
        const index_t j = p.indices[e], id = p.id(e);
        const A bias = p.edge_bias(id, h);
        if (bias == minus_infinity<A>()) continue;
        if constexpr (!Score::kPerHead) {
          const index_t column = static_cast<index_t>(h) * width + t.channel;
          load_end<T, VEC>(walk.own.x, p.src, j, column, inside);
          load_end<T, VEC>(walk.own.f, p.edge, id, column, inside);
        }
        const A sum = raw_logit<T, VEC, Score>(p, t, j, row, id, h, walk.own);
        const auto l = Score::template logit<A>(sum, activation, p.alpha);
        const A a = softmax_term(l.value + bias, f.max) * f.inverse;
        const A d = walk.coefficient_gradient(j, row, id, h, p.dropout.template factor<A>(id, h));
        const A ad = a * (d - f.shift);
        f.mean += ad;
        A r[R];
        if constexpr (Score::kPerHead) {
          r[0] = l.slope;
        } else {
          Score::template by_destination<A, VEC>(walk.own, activation, p.alpha, r);
        }
#pragma unroll
        for (int v = 0; v < R; ++v) {
          with[v] += ad * r[v];
          without[v] += a * r[v];
        }
      }
      const index_t of_head = static_cast<index_t>(row) * heads + h;
      if (pieces.row) {
        const index_t n = n_items * heads;
        if (inside) {
          store_sums(partials + i * directions + channel, with);
          store_sums(partials + (n + i) * directions + channel, without);
        }
        if (tile == 0 && t.lane == 0) {
          partials[2 * n * directions + i] = f.mean;
          if (item.begin == first) fields[of_head] = f;
        }
        continue;
      }
      if (tile == 0 && t.lane == 0) fields[of_head] = f;
      if (!grad_dst || !inside) continue;
      // An only edge has coefficient 1 whatever its logit.
#pragma unroll
      for (int v = 0; v < R; ++v)
        with[v] = last - first == 1 ? A(0) : with[v] - f.mean * without[v];
      gradient.store(row, static_cast<index_t>(h) * directions + channel, with);
    }
  }
}

// dz = delta act'(z) is what the edge's part of a score gets (GAT): its gradient, and its weights'.
template <typename T, int VEC>
__device__ __forceinline__ void
edge_part(const Attention<T>& p, const Lane& t, const Gradient<T>& to, index_t id, int h,
          accum_t<T> dz, bool masked, accum_t<T>* weight_sums) {
  using A = accum_t<T>;
  const index_t at = static_cast<index_t>(h) * p.edge_width;
  const index_t weights = 2 * static_cast<index_t>(p.heads) * p.width + at;
  for (int c = t.lane * VEC; c < p.edge_width; c += t.lanes * VEC) {
    if (to.data) {
      A gradient[VEC];
#pragma unroll
      for (int v = 0; v < VEC; ++v) gradient[v] = dz * p.weight(weights + c + v);
      to.store(id, at + c, gradient);
    }
    if (!weight_sums || masked) continue;
    A features[VEC], sums[VEC];
    load_vec<T, VEC>(features, p.edge.at(0, id) + at + c);
    load_vec<A, VEC>(sums, weight_sums + c);
#pragma unroll
    for (int v = 0; v < VEC; ++v) sums[v] += dz * features[v];
    store_sums(weight_sums + c, sums);
  }
}

// Turns a source's sums into its gradients; a piece's are parts of sums, the first has the own
// part.
template <typename T, int VEC, typename Score, int R>
__device__ __forceinline__ void
source_gradients(const BackwardWalk<T, VEC, Score>& walk, index_t j, int h, const accum_t<T>* own,
                 index_t own_row, accum_t<T> (&values)[VEC], accum_t<T> (&sums)[R],
                 accum_t<T> (&weight_sum)[VEC]) {
  using A = accum_t<T>;
  const Attention<T>& p = walk.p;
  const Lane& t = walk.t;
  if (t.channel >= p.width) return;
  const index_t column = static_cast<index_t>(h) * p.width + t.channel;
  if constexpr (Score::kPerHead) {
    const index_t dim = static_cast<index_t>(p.heads) * p.width;
    const A of_own = own ? own[j * own_row + h] : A(0);
    A x[VEC];
    load_vec<T, VEC>(x, p.src.at(0, j) + column);
#pragma unroll
    for (int v = 0; v < VEC; ++v) {
      if (sums[0] != A(0)) weight_sum[v] += sums[0] * x[v];  // else the row may hold anything
      values[v] += sums[0] * p.weight(column + v);
      if (own) values[v] += of_own * p.weight(dim + column + v);
    }
  } else {
#pragma unroll
    for (int v = 0; v < VEC; ++v) {
      const A of_own = own ? own[j * own_row + column + v] : A(0);
      if constexpr (Score::kSeparateValues) {
        sums[v] += of_own;
      } else {
        values[v] += sums[v] + of_own;
      }
    }
  }
}

// By source, over the reverse graph. Pieces leave sums like `grad_src` in `partials`, and then sums
// like `grad_value` where values are apart. `own` has gradients of destinations that are sources:
// of each channel, or of each head for what its score is of (GAT); it may be `grad_src` itself.
template <typename T, int VEC, typename Score>
__global__ void __launch_bounds__(kBlockThreads, kBackwardBlocks)
attention_bwd_src(void* grad_src, index_t grad_src_row, int grad_src_is_wide,
                  void* __restrict__ grad_value, index_t grad_value_row, int grad_value_is_wide,
                  void* __restrict__ grad_edge, index_t grad_edge_row, int grad_edge_is_wide,
                  void* __restrict__ grad_bias, index_t grad_bias_row, int grad_bias_is_wide,
                  accum_t<T>* __restrict__ weight_sums, accum_t<T>* __restrict__ edge_weight_sums,
                  accum_t<T>* __restrict__ partials, const accum_t<T>* own, index_t own_stride,
                  index_t n_own, const DstFields<accum_t<T>>* __restrict__ fields,
                  const T* __restrict__ grad_output, index_t grad_output_row,
                  const void* __restrict__ grad_attention, index_t grad_attention_row,
                  int grad_attention_is_double, const void* __restrict__ rev_offsets,
                  const void* __restrict__ rev_dst, const void* __restrict__ rev_position,
                  const index_t* __restrict__ piece_row, const index_t* __restrict__ piece_begin,
                  const index_t* __restrict__ piece_end, index_t n_items, index_t limit,
                  EG_ATTENTION_PARAMETERS(T)) {
  using A = accum_t<T>;
  constexpr int R = Score::kPerHead ? 1 : VEC;
  const Attention<T> p = EG_ATTENTION(T);
  const Upstream<T> up{{grad_output, grad_output_row, 0},
                       grad_attention,
                       grad_attention_row,
                       grad_attention_is_double};
  const Ids starts{rev_offsets, wide_ids}, ends{rev_dst, wide_ids},
      positions{rev_position, wide_ids};
  const Ids columns{offsets, wide_ids};
  const Pieces pieces{piece_row, piece_begin, piece_end, n_items, limit};
  const Gradient<T> to_src{grad_src, grad_src_row, grad_src_is_wide};
  const Gradient<T> to_value{grad_value, grad_value_row, grad_value_is_wide};
  const Gradient<T> to_edge{grad_edge, grad_edge_row, grad_edge_is_wide};
  const Gradient<T> to_bias{grad_bias, grad_bias_row, grad_bias_is_wide};
  const int tiles = tiles_of<VEC>(width > value_width ? width : value_width);
  const index_t team = first_item();
  for (int tile = blockIdx.y; tile < tiles; tile += gridDim.y) {
    const Lane t = lane_of<VEC>(tile);
    BackwardWalk<T, VEC, Score> walk(p, up, t);
    const bool inside = t.channel < width, inside_value = t.channel < value_width;
    // A team's items are all of one head: the plan makes the teams a multiple of the heads.
    A weight_sum[VEC] = {};
    if (Score::kPerHead && edge_weight_sums && tile == 0)
      for (int c = t.lane * VEC; c < edge_width; c += t.lanes * VEC)
        store_sums(edge_weight_sums + team * edge_width + c, weight_sum);
    for (index_t i = team; i < n_items * heads; i += item_stride()) {
      const HeadItem at = head_item(i, heads);
      const Item item = item_at(pieces, starts, at.unit);
      if (item.begin > item.end) continue;
      const int h = at.head;
      const index_t j = item.row, column = static_cast<index_t>(h) * width + t.channel;
      own_row<T, VEC, Score>(p, t, h, p.src.at(0, j) + static_cast<index_t>(h) * width, walk.own.x,
                             walk.own.w);
      A values[VEC] = {}, sums[R] = {};
      for (index_t r = item.begin; r < item.end; ++r) {
        const index_t row = ends[r], id = p.id(positions[r]);
        const A bias = p.edge_bias(id, h);
        const bool masked = bias == minus_infinity<A>();
        A delta = A(0), slope = A(0), a = A(0), derivative[VEC] = {};
        if (!masked) {
          const DstFields<A> f = fields[row * heads + h];
          if constexpr (!Score::kPerHead) {
            load_end<T, VEC>(walk.own.y, p.dst, row, column, inside);
            load_end<T, VEC>(walk.own.f, p.edge, id, column, inside);
          }
          const A sum = raw_logit<T, VEC, Score>(p, t, j, row, id, h, walk.own);
          const auto l = Score::template logit<A>(sum, activation, p.alpha);
          const A alpha_e = softmax_term(l.value + bias, f.max) * f.inverse;
          const A factor = p.dropout.template factor<A>(id, h);
          const A d = walk.coefficient_gradient(j, row, id, h, factor);
          delta = columns[row + 1] - columns[row] == 1 ? A(0) : alpha_e * ((d - f.shift) - f.mean);
          a = factor * alpha_e;
          slope = l.slope;
          walk.load_gradient(row, h);
          if constexpr (!Score::kPerHead)
            Score::template by_source<A, VEC>(walk.own, activation, p.alpha, derivative);
#pragma unroll
          for (int v = 0; v < VEC; ++v) values[v] += a * walk.g[v];
          if constexpr (Score::kPerHead) {
            sums[0] += delta * slope;
          } else {
#pragma unroll
            for (int v = 0; v < VEC; ++v) sums[v] += delta * derivative[v];
          }
          if constexpr (Score::kHasWeights && !Score::kPerHead)
            Score::template add_weights<A, VEC>(walk.own, activation, p.alpha, delta, weight_sum);
        }
        if (grad_bias && tile == 0 && t.lane == 0) to_bias.store(id, h, delta);
        if constexpr (Score::kPerHead) {
          if (tile == 0 && (grad_edge || edge_weight_sums) && edge)
            edge_part<T, VEC>(p, t, to_edge, id, h, delta * slope, masked,
                              edge_weight_sums ? edge_weight_sums + team * edge_width : nullptr);
        } else if (grad_edge && inside) {
#pragma unroll
          for (int v = 0; v < VEC; ++v)
            derivative[v] =
                delta * derivative[v] + (Score::kEdgeInValue && !masked ? a * walk.g[v] : A(0));
          to_edge.store(id, column, derivative);
        }
      }
      const bool has_own = own && j < n_own && item.begin == starts[j];
      source_gradients<T, VEC, Score>(walk, j, h, has_own ? own : nullptr, own_stride, values, sums,
                                      weight_sum);
      if (pieces.row) {
        A* to_values = partials + (Score::kSeparateValues ? n_items * heads * width : 0);
        if (inside_value) store_sums(to_values + i * value_width + t.channel, values);
        if constexpr (Score::kSeparateValues) {
          if (inside) store_sums(partials + i * width + t.channel, sums);
        }
      } else if constexpr (Score::kSeparateValues) {
        if (grad_src && inside) to_src.store(j, column, sums);
        if (grad_value && inside_value)
          to_value.store(j, static_cast<index_t>(h) * value_width + t.channel, values);
      } else if (grad_src && inside) {
        to_src.store(j, column, values);
      }
    }
    if (weight_sums && inside) store_sums(weight_sums + team * width + t.channel, weight_sum);
  }
}

}  // namespace edgegrad
