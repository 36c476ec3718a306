// Host kernels of mha_gat_v2: z = x + y + f, logit = <w, act(z)>, per head.
#include "attention_family.h"

namespace edgegrad::EG_ISA {
namespace {

template <typename T, int kPacks> struct GatV2Score {
  using A = accum_t<T>;
  static constexpr bool kPerHead = false, kEdgeInValue = false, kSeparateValues = false;

  const Edges<T, kPacks>& edges;
  const Attention::Problem& p;
  Weights<T> weights;

  explicit GatV2Score(const Edges<T, kPacks>& e) : edges(e), p(e.p), weights(p, 0, e.scored) {}

  template <Walk> EG_INLINE void own(const T* row, const Space<T>& s) const {
    pad_row(edges.scored, s.own, row, edges.scored.width);
  }

  template <Walk kWalk> EG_INLINE void logits(const EdgeRows<T>& rows, const Space<T>& s) const {
    const std::int64_t width = edges.scored.width;
    const auto term = [&](std::int64_t h, std::int64_t at, std::int64_t c, auto part) {
      Pack<A> z = load(s.own + at) + part.load(rows.other + h * width + c);
      if (rows.edge != nullptr) z += part.load(rows.edge + h * width + c);
      const Pack<A> w = load(weights.get() + at);
      const auto activated = activate<PackExp>(p.activation, z, A(p.alpha));
      if (kWalk != Walk::kForward) store(s.direction + at, Pack<A>(w * activated.slope));
      if (kWalk == Walk::kBySource) store(s.activated + at, activated.value);
      return Pack<A>(w * activated.value);
    };
    sum_columns(edges.scored, s.logits, term);
  }
};

}  // namespace

const Attention& mha_gat_v2() { return kAttention<GatV2Score>; }

}  // namespace edgegrad::EG_ISA
