// Host kernels of mha_gat: z = <w_s, x> + <w_d, y> + <w_e, f>, logit = act(z), per head.
#include "attention_family.h"

namespace edgegrad::EG_ISA {
namespace {

template <typename T> struct GatScore {
  using A = accum_t<T>;
  static constexpr bool kPerHead = true, kEdgeInValue = false, kSeparateValues = false;

  const Attention::Problem& p;
  std::int64_t heads, width, edge_width;
  Weights<T> source, destination, edge;

  explicit GatScore(const Attention::Problem& problem)
      : p(problem),
        heads(p.heads),
        width(p.dim / p.heads),
        edge_width(p.edge_dim / p.heads),
        source(p, 0, p.dim),
        destination(p, p.dim, p.dim),
        edge(p, 2 * p.dim, p.edge_dim) {}

  void of_source(const T* x, const Space<A>& s, A* sums) const {
    dot_heads(source.get(), x, heads, width, s.products, sums);
  }
  void of_destination(const T* y, const Space<A>& s, A* sums) const {
    dot_heads(destination.get(), y, heads, width, s.products, sums);
  }

  void logits(const EdgeRows<T>& rows, Side side, const Space<A>& s, A* to) const {
    if (rows.edge != nullptr)
      dot_heads(edge.get(), rows.edge, heads, edge_width, s.products, s.sums);
    for (std::int64_t h = 0; h < heads; h += kLanes<A>) {
      Pack<A> z = load(s.source + h) + load(s.destination + h);
      if (rows.edge != nullptr) z += load(s.sums + h);
      const auto activated = activate<PackExp>(p.activation, z, A(p.alpha));
      // `to` may be in the middle of a block's logits.
      store_part(to + h, activated.value,
                 static_cast<int>(heads - h < kLanes<A> ? heads - h : kLanes<A>));
      if (side != Side::kNone) store(s.direction + h, activated.slope);
    }
  }

  // What the gradient of an end's number per head is multiplied by.
  void times_source(const A* k, const Space<A>& s, A* to) const { times(source.get(), k, s, to); }
  void times_destination(const A* k, const Space<A>& s, A* to) const {
    times(destination.get(), k, s, to);
  }
  void times_edge(const A* wide, A* to) const {
    for (std::int64_t c = 0; c < p.edge_dim; ++c) to[c] = wide[c] * edge.get()[c];
  }

 private:
  void times(const A* weights, const A* k, const Space<A>& s, A* to) const {
    expand_heads(k, heads, width, s.products);
    for (std::int64_t c = 0; c < p.dim; ++c) to[c] = s.products[c] * weights[c];
  }
};

}  // namespace

const Attention& mha_gat() { return kAttention<GatScore>; }

}  // namespace edgegrad::EG_ISA
