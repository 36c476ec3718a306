// Host kernels of mha_simple: logit = <query, key + f> * scale, per head; values are v + f.
#include "attention_family.h"

namespace edgegrad::EG_ISA {
namespace {

template <typename T> struct DotScore {
  using A = accum_t<T>;
  static constexpr bool kPerHead = false, kEdgeInValue = true, kSeparateValues = true;

  const Attention::Problem& p;

  explicit DotScore(const Attention::Problem& problem) : p(problem) {}

  void of_source(const T*, const Space<A>&, A*) const {}
  void of_destination(const T*, const Space<A>&, A*) const {}

  // The derivative of a logit by one end is the other end.
  void logits(const EdgeRows<T>& rows, Side side, const Space<A>& s, A* to) const {
    const A scale = A(p.alpha);
    for (std::int64_t c = 0; c < p.dim; c += kLanes<A>) {
      Pack<A> key = load_row(rows.src, c, p.dim);
      if (rows.edge != nullptr) key += load_row(rows.edge, c, p.dim);
      const Pack<A> query = load_row(rows.dst, c, p.dim) * scale;
      store(s.products + c, Pack<A>(query * key));
      if (side == Side::kDestination) store(s.direction + c, Pack<A>(key * scale));
      if (side == Side::kSource) store(s.direction + c, query);
    }
    sum_heads(s.products, p.heads, p.dim / p.heads, to);
  }
};

}  // namespace

const Attention& mha_simple() { return kAttention<DotScore>; }

}  // namespace edgegrad::EG_ISA
