// Host kernels of mha_gat_v2: z = x + y + f, logit = <w, act(z)>, per head.
#include "attention_family.h"

namespace edgegrad::EG_ISA {
namespace {

template <typename T> struct GatV2Score {
  using A = accum_t<T>;
  static constexpr bool kPerHead = false, kEdgeInValue = false, kSeparateValues = false;

  const Attention::Problem& p;
  Weights<T> weights;

  explicit GatV2Score(const Attention::Problem& problem) : p(problem), weights(p, 0, p.dim) {}

  void of_source(const T*, const Space<A>&, A*) const {}
  void of_destination(const T*, const Space<A>&, A*) const {}

  void logits(const EdgeRows<T>& rows, Side side, const Space<A>& s, A* to) const {
    for (std::int64_t c = 0; c < p.dim; c += kLanes<A>) {
      Pack<A> z = load_row(rows.src, c, p.dim) + load_row(rows.dst, c, p.dim);
      if (rows.edge != nullptr) z += load_row(rows.edge, c, p.dim);
      const Pack<A> w = load(weights.get() + c);
      const auto activated = activate<PackExp>(p.activation, z, A(p.alpha));
      store(s.products + c, Pack<A>(w * activated.value));
      if (side == Side::kNone) continue;
      store(s.direction + c, Pack<A>(w * activated.slope));
      store(s.values + c, activated.value);
    }
    sum_heads(s.products, p.heads, p.dim / p.heads, to);
  }
};

}  // namespace

const Attention& mha_gat_v2() { return kAttention<GatV2Score>; }

}  // namespace edgegrad::EG_ISA
