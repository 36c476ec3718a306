// Host kernels of mha_gat: z = <w_s, x> + <w_d, y> + <w_e, f>, logit = act(z), per head.
#include "attention_family.h"

namespace edgegrad::EG_ISA {
namespace {

template <typename T, int kPacks> struct GatScore {
  using A = accum_t<T>;
  static constexpr bool kPerHead = true, kEdgeInValue = false, kSeparateValues = false;

  const Edges<T, kPacks>& edges;
  const Attention::Problem& p;
  Weights<T> source, destination, edge;

  explicit GatScore(const Edges<T, kPacks>& e)
      : edges(e),
        p(e.p),
        source(p, 0, e.scored),
        destination(p, p.dim, e.scored),
        edge(p, 2 * p.dim, e.edge) {}

  template <Walk kWalk> EG_INLINE void own(const T* row, const Space<T>& s) const {
    const A* weights = (kWalk == Walk::kBySource ? source : destination).get();
    dot_heads(edges.scored, weights, row, edges.scored.width, s.own_number);
  }

  template <Walk kWalk> EG_INLINE void logits(const EdgeRows<T>& rows, const Space<T>& s) const {
    const A* number = rows.number;
    if (kWalk != Walk::kBySource) {
      dot_heads(edges.scored, source.get(), rows.other, edges.scored.width, s.number);
      number = s.number;
    }
    if (rows.edge != nullptr)
      dot_heads(edges.edge, edge.get(), rows.edge, edges.edge.width, s.sums);
    for (std::int64_t h = 0; h < p.heads; h += kLanes<A>) {
      Pack<A> z = load(s.own_number + h) + load(number + h);
      if (rows.edge != nullptr) z += load(s.sums + h);
      const auto activated = activate<PackExp>(p.activation, z, A(p.alpha));
      store(s.logits + h, activated.value);
      if (kWalk != Walk::kForward) store(s.slope + h, activated.slope);
    }
  }
};

}  // namespace

const Attention& mha_gat() { return kAttention<GatScore>; }

}  // namespace edgegrad::EG_ISA
