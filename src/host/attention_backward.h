// Attention, backward: once by destination for what belongs to a row's softmax, once by source
// over the reverse graph for everything that belongs to a source or to an edge.
// Included only by files compiled per instruction set.
#pragma once
#include "attention_edges.h"

namespace edgegrad::EG_ISA {
namespace {

// What backward keeps of a destination, `heads` numbers each: what logits are shifted by; 1 / sum,
// negative where there is one edge, whose coefficient is 1 whatever its logit; what coefficients'
// gradients are shifted by, and their mean beside that; score and gradient of the score (GAT).
enum DstField {
  kMax,
  kInverse,
  kShift,
  kMean,
  kDstFields,
  kScore = kDstFields,
  kSlope,
  kAllFields
};

// Scratch that lives through both halves.
template <typename A> struct Kept {
  A* destinations;    // n_dst x fields x heads
  std::int64_t size;  // of a destination
  A* own;             // gradient of destinations that are sources, where it is no number per head
  std::int64_t own_row;
  A* sums;  // of weight gradients: one row per slot

  A* of(std::int64_t r) const { return destinations + r * size; }
};

// What both halves of backward share.
template <typename T, int kPacks, template <typename, int> class ScoreOf> struct AttentionGradient {
  using A = accum_t<T>;
  using Problem = Attention::Problem;
  using Score = ScoreOf<T, kPacks>;
  static constexpr int kWidth = kLanes<A>;

  const Problem& p;
  const Attention::Backward& out;
  const Edges<T, kPacks>& edges;
  const Score& score;
  const Kept<A>& kept;
  std::int64_t heads = p.heads, numbers = edges.numbers;
  // A logit's derivative by an end: a number per head (GAT), or one per feature.
  std::int64_t direction_size = Score::kPerHead ? numbers : edges.scored.size();
  A share = p.concat ? A(1) : A(1) / A(heads);  // of the output's gradient that a head gets
  std::int64_t gradient_stride = p.concat ? edges.summed.width : 0;
  std::int64_t gradient_size = p.value_dim / (p.concat ? 1 : heads);

  const T* gradient_row(std::int64_t i) const { return out.grad_output.at<T>(0, i); }

  void read_gamma(std::int64_t edge, const Space<T>& s) const {
    for (std::int64_t h = 0; out.grad_attention && h < heads; ++h)
      s.gamma[h] = out.grad_attention.dtype == DType::float64
                       ? A(out.grad_attention.rows.template at<double>(0, h)[edge])
                       : A(out.grad_attention.rows.template at<float>(0, h)[edge]);
  }

  // From logits and <gradient, value> to coefficients, and in `dots` what is lost or gained by
  // each, less the row's shift.
  EG_INLINE void coefficients(const A* of_dst, A scale, const Space<T>& s) const {
    for (std::int64_t h = 0; h < heads; h += kWidth) {
      const Pack<A> l = edges.biased(load(s.logits + h), h, s);
      const Pack<A> inverse = load(of_dst + kInverse * heads + h);
      const Pack<A> term = PackExp::of(l - load(of_dst + kMax * heads + h));
      store(s.alpha + h, Pack<A>(term * (inverse < Pack<A>{} ? -inverse : inverse)));
      const Pack<A> gradient = load(s.dots + h) * scale + load(s.gamma + h);
      store(s.dots + h, Pack<A>(load(s.factor + h) * gradient - load(of_dst + kShift * heads + h)));
    }
  }

  // Lets nothing pass in masked heads.
  void clear_masked(const Space<T>& s) const {
    for (std::int64_t h = 0; h < heads; ++h) {
      if (!edges.is_masked(s, h)) continue;
      s.alpha[h] = s.dots[h] = s.delta[h] = s.slope[h] = A(0);
      if (Score::kPerHead) continue;
      const std::int64_t n = edges.scored.padded();
      fill(s.direction + h * n, n, A(0));
      fill(s.activated + h * n, n, A(0));
    }
  }
};

template <typename A> constexpr DType accumulator() {
  return sizeof(A) == sizeof(double) ? DType::float64 : DType::float32;
}

// Adds up two states that are sums.
template <typename A> struct AddStates {
  std::int64_t size;
  void operator()(A* total, const A* other) const {
    for (std::int64_t c = 0; c < size; ++c) total[c] += other[c];
  }
};

// A part of the weight gradient is the sum over slots, in order.
template <typename T, int kPacks, typename Shape>
void write_weights(const Edges<T, kPacks>& edges, const Attention::Array& to, std::int64_t column,
                   const Shape& shape, const accum_t<T>* sums, std::int64_t slots,
                   std::int64_t size) {
  using A = accum_t<T>;
  const Scratch<A> total(shape.size() + 1);
  for (std::int64_t c = 0; c < shape.size(); ++c) {
    total[c] = A(0);
    for (std::int64_t i = 0; i < slots; ++i) total[c] += sums[i * size + c];
  }
  edges.write(to, 0, shape, total.get(), column);
}

}  // namespace
}  // namespace edgegrad::EG_ISA
