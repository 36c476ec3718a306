// The table of an attention family: its score with every type and shape. Included only by its .cpp.
#pragma once
#include "attention_by_destination.h"
#include "attention_by_source.h"
#include "attention_forward.h"

#include <type_traits>

namespace edgegrad::EG_ISA {
namespace {

// Attention weights of one kind of row from column `at` on, padded.
template <typename T> class Weights {
 public:
  using A = accum_t<T>;
  template <typename Shape>
  Weights(const Attention::Problem& p, std::int64_t at, const Shape& shape) : data_(shape.size()) {
    if (p.weights.dtype == p.dtype) {
      pad_row(shape, data_.get(), p.weights.rows.template at<T>(0, 0) + at, shape.width);
    } else {
      pad_row(shape, data_.get(), p.weights.rows.template at<A>(0, 0) + at, shape.width);
    }
  }
  const A* get() const { return data_.get(); }

 private:
  Scratch<A> data_;
};

template <typename T, int kPacks, template <typename, int> class ScoreOf>
void backward(const Attention::Problem& p, const Attention::Backward& out, const Pieces& by_dst,
              const Pieces& by_src) {
  using A = accum_t<T>;
  using Score = ScoreOf<T, kPacks>;
  const Edges<T, kPacks> edges{p};
  const Score score{edges};
  const Spaces<T, kPacks> spaces(edges);
  const bool weights = bool(out.grad_weights);
  const bool own = out.own && out.grad_src && !Score::kPerHead;
  const bool in_place = out.grad_src.dtype == accumulator<A>();
  const std::int64_t fields = Score::kPerHead ? kAllFields : kDstFields;
  // Packs may be read from the last number on.
  const Scratch<A> destinations(p.n_dst * fields * p.heads + kLanes<A>);
  const Scratch<A> own_rows(own && !in_place ? p.n_dst * p.dim : 0);
  Kept<A> kept{destinations.get(), fields * p.heads, nullptr, p.dim, nullptr};
  if (own) {
    kept.own = in_place ? out.grad_src.rows.template at<A>(0, 0) : own_rows.get();
    kept.own_row = in_place ? out.grad_src.rows.row : p.dim;
  }
  {
    const std::int64_t work = edges.chunk_work(p.offsets, p.n_dst);
    const std::int64_t slots = count_chunks(p.offsets, p.n_dst, work) + by_dst.count;
    const bool sums_weights = weights && Score::kPerHead;
    const Scratch<A> sums(sums_weights ? slots * edges.row_size : 0);
    fill(sums.get(), sums_weights ? slots * edges.row_size : 0, A(0));
    kept.sums = sums_weights ? sums.get() : nullptr;
    AttentionByDestination<T, kPacks, ScoreOf>{{p, out, edges, score, kept}}.run(by_dst, work,
                                                                                 spaces);
    if (sums_weights)
      write_weights(edges, out.grad_weights, p.dim, edges.scored, sums.get(), slots,
                    edges.row_size);
  }
  if (!weights && !out.grad_src && !out.grad_value && !out.grad_edge && !out.grad_bias) return;
  const AttentionBySource<T, kPacks, ScoreOf> sources{{p, out, edges, score, kept}};
  const std::int64_t work = edges.chunk_work(out.rev_offsets, p.n_src), size = sources.slot_size();
  const std::int64_t slots = count_chunks(out.rev_offsets, p.n_src, work) + by_src.count;
  const Scratch<A> sums(weights ? slots * size : 0);
  fill(sums.get(), weights ? slots * size : 0, A(0));
  kept.sums = sums.get();
  sources.run(by_src, work, spaces);
  if (!weights) return;
  write_weights(edges, out.grad_weights, 0, edges.scored, sums.get(), slots, size);
  if (Score::kPerHead && p.edge_dim > 0)
    write_weights(edges, out.grad_weights, 2 * p.dim, edges.edge, sums.get() + edges.row_size,
                  slots, size);
}

// Calls `call` with a feature and a number of packs per head that its kernels are compiled for.
template <typename Call> void with_shape(const Attention::Problem& p, const Call& call) {
  const auto any = std::integral_constant<int, 0>{};
  const std::int64_t width = p.dim / p.heads;
  switch (p.dtype) {
    case DType::float16:
      return call(half_t{}, any);
    case DType::bfloat16:
      return call(bfloat16_t{}, any);
    case DType::float32:
      if (width == kLanes<float> && p.value_dim == p.dim)
        return call(float{}, std::integral_constant<int, 1>{});
      return call(float{}, any);
    default:
      return call(double{}, any);
  }
}

template <template <typename, int> class ScoreOf>
constexpr Attention kAttention = {
    [](const Attention::Problem& p, const Attention::Forward& out, const Pieces& pieces) {
      with_shape(p, [&](auto t, auto packs) {
        AttentionForward<decltype(t), decltype(packs)::value, ScoreOf>{p, out}.run(pieces);
      });
    },
    [](const Attention::Problem& p, const Attention::Backward& out, const Pieces& by_dst,
       const Pieces& by_src) {
      with_shape(p, [&](auto t, auto packs) {
        backward<decltype(t), decltype(packs)::value, ScoreOf>(p, out, by_dst, by_src);
      });
    },
};

}  // namespace
}  // namespace edgegrad::EG_ISA
