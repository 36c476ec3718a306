// Host kernels of mha_simple: logit = <query, key + f> * scale, per head; values are v + f.
#include "attention_family.h"

namespace edgegrad::EG_ISA {
namespace {

template <typename T, int kPacks> struct DotScore {
  using A = accum_t<T>;
  static constexpr bool kPerHead = false, kEdgeInValue = true, kSeparateValues = true;

  const Edges<T, kPacks>& edges;
  const Attention::Problem& p;

  explicit DotScore(const Edges<T, kPacks>& e) : edges(e), p(e.p) {}

  // A scaled query, or a key.
  template <Walk kWalk> EG_INLINE void own(const T* row, const Space<T>& s) const {
    pad_row(edges.scored, s.own, row, edges.scored.width,
            kWalk == Walk::kBySource ? A(1) : A(p.alpha));
  }

  // The derivative of a logit by one end is the other end, scaled.
  template <Walk kWalk> EG_INLINE void logits(const EdgeRows<T>& rows, const Space<T>& s) const {
    const std::int64_t width = edges.scored.width;
    const A scale = A(p.alpha);
    const auto term = [&](std::int64_t h, std::int64_t at, std::int64_t c, auto part) {
      const Pack<A> own = load(s.own + at), other = part.load(rows.other + h * width + c);
      Pack<A> query = own, key = other;
      if (kWalk == Walk::kBySource) query = other * scale, key = own;
      if (rows.edge != nullptr) key += part.load(rows.edge + h * width + c);
      if (kWalk == Walk::kByDestination) store(s.direction + at, Pack<A>(key * scale));
      if (kWalk == Walk::kBySource) store(s.direction + at, query);
      return Pack<A>(query * key);
    };
    sum_columns(edges.scored, s.logits, term);
  }
};

}  // namespace

const Attention& mha_simple() { return kAttention<DotScore>; }

}  // namespace edgegrad::EG_ISA
