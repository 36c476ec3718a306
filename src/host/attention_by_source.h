// Attention, backward by source, over the reverse graph: everything that belongs to a source or to
// an edge.
// Included only by files compiled per instruction set.
#pragma once
#include "attention_backward.h"

namespace edgegrad::EG_ISA {
namespace {

template <typename T, int kPacks, template <typename, int> class ScoreOf>
struct AttentionBySource : AttentionGradient<T, kPacks, ScoreOf> {
  using Base = AttentionGradient<T, kPacks, ScoreOf>;
  using Base::direction_size, Base::edges, Base::gradient_size, Base::gradient_stride, Base::heads;
  using Base::kept, Base::kWidth, Base::numbers, Base::out, Base::p, Base::score, Base::share;
  using typename Base::A;
  using typename Base::Score;
  static constexpr std::int64_t kAhead = Edges<T, kPacks>::kAhead;

  bool weights = bool(out.grad_weights);
  bool by_edge = out.grad_edge || (weights && (!Score::kPerHead || p.edge.data != nullptr));
  bool by_id = edges.by_id || out.grad_attention || out.grad_edge || out.grad_bias;

  // A slot of sums: those of the source part of weights, then (GAT) of the edge part.
  std::int64_t slot_size() const { return (Score::kPerHead ? 2 : 1) * edges.row_size; }

  // State: what values get, then the sums of the logits' derivatives.
  std::int64_t state_size() const { return edges.summed.size() + direction_size; }

  EdgeRows<T> rows_of(std::int64_t r, std::int64_t i) const {
    if (r + kAhead < p.n_edges) {
      const std::int64_t ahead = out.rev_dst[r + kAhead];
      prefetch_start(Base::gradient_row(ahead), gradient_size);
      prefetch_start(kept.of(ahead), kept.size);
      if (!Score::kPerHead) prefetch_start(p.dst.template at<T>(0, ahead), p.dim);
    }
    const std::int64_t id = by_id ? edges.id(out.rev_position[r]) : 0;
    return {id, p.dst.template at<T>(0, i), nullptr, edges.edge_row(id),
            kept.of(i) + kScore * heads};
  }

  void walk(const Run& run, A* state, const Space<T>& s) const {
    A *values = state, *sums = state + edges.summed.size();
    A* weight_sums = weights ? kept.sums + run.slot * slot_size() : nullptr;
    fill(state, state_size(), A(0));
    if (run.begin == run.end) return;
    score.template own<Walk::kBySource>(p.src.template at<T>(0, run.row), s);
    pad_row(edges.summed, s.values, p.value.template at<T>(0, run.row), edges.summed.width);
    for (std::int64_t r = run.begin; r < run.end; ++r) {
      const std::int64_t i = out.rev_dst[r];
      const EdgeRows<T> rows = rows_of(r, i);
      const std::int64_t masked = edges.read_bias(rows.id, s);
      if (masked == heads) {
        write_nothing(rows.id, s);
        continue;
      }
      edges.read_factors(rows.id, s);
      Base::read_gamma(rows.id, s);
      const T* gradient = Base::gradient_row(i);
      if (masked > 0)
        gradient = edges.blanked(gradient, edges.summed.width, gradient_stride, s, s.blank);
      const std::int64_t stride = masked > 0 ? edges.summed.width : gradient_stride;
      score.template logits<Walk::kBySource>(rows, s);
      dot_heads(edges.summed, s.values, gradient, stride, s.dots);
      if (by_edge) pad_row(edges.summed, s.upstream, gradient, stride, share);
      if (Score::kEdgeInValue && rows.edge != nullptr) add_edge_dots(rows, gradient, stride, s);
      const A* of_dst = kept.of(i);
      Base::coefficients(of_dst, share, s);
      for (std::int64_t h = 0; h < heads; h += kWidth) {
        const Pack<A> alpha = load(s.alpha + h);
        const Pack<A> delta = alpha * (load(s.dots + h) - load(of_dst + kMean * heads + h));
        const Pack<A> inverse = load(of_dst + kInverse * heads + h);
        store(s.delta + h, inverse < Pack<A>{} ? Pack<A>{} : delta);
        store(s.alpha + h, Pack<A>(alpha * load(s.factor + h)));
      }
      if (masked > 0) Base::clear_masked(s);
      for (std::int64_t h = 0; h < heads; h += kWidth)
        store(s.sums + h, Pack<A>(load(s.alpha + h) * share));
      add_scaled(edges.summed, values, s.sums, gradient, stride);
      if constexpr (Score::kPerHead) {
        for (std::int64_t h = 0; h < heads; h += kWidth)
          store(sums + h, Pack<A>(load(sums + h) + load(s.delta + h) * load(s.slope + h)));
      } else {
        for_columns(edges.scored, [&](std::int64_t h, std::int64_t at, std::int64_t, auto) {
          store(sums + at, Pack<A>(load(sums + at) + s.delta[h] * load(s.direction + at)));
        });
      }
      if (out.grad_bias) edges.write_numbers(out.grad_bias, rows.id, s.delta);
      if (by_edge) edge_gradients(rows, s, weight_sums);
    }
  }

  void add_edge_dots(const EdgeRows<T>& rows, const T* gradient, std::int64_t stride,
                     const Space<T>& s) const {
    pad_row(edges.summed, s.wide, gradient, stride);
    dot_heads(edges.summed, s.wide, rows.edge, edges.summed.width, s.sums);
    for (std::int64_t h = 0; h < heads; ++h) s.dots[h] += s.sums[h];
  }

  void write_nothing(std::int64_t id, const Space<T>& s) const {
    fill(s.wide, edges.row_size, A(0));
    if (out.grad_bias) edges.write_numbers(out.grad_bias, id, s.wide);
    if (out.grad_edge) edges.write(out.grad_edge, id, edges.edge, s.wide);
  }

  void edge_gradients(const EdgeRows<T>& rows, const Space<T>& s, A* weight_sums) const {
    if constexpr (Score::kPerHead) {
      for (std::int64_t h = 0; h < heads; ++h) s.sums[h] = s.delta[h] * s.slope[h];
      if (weight_sums != nullptr)
        add_scaled_if_any(edges.edge, weight_sums + edges.row_size, s.sums, rows.edge);
      if (out.grad_edge) scale_heads(edges.edge, s.wide, s.sums, score.edge.get());
    } else {
      for_columns(edges.scored, [&](std::int64_t h, std::int64_t at, std::int64_t, auto) {
        if (weight_sums != nullptr)
          store(weight_sums + at,
                Pack<A>(load(weight_sums + at) + s.delta[h] * load(s.activated + at)));
        if (!out.grad_edge) return;
        Pack<A> gradient = s.delta[h] * load(s.direction + at);
        if (Score::kEdgeInValue) gradient += s.alpha[h] * load(s.upstream + at);
        store(s.wide + at, gradient);
      });
    }
    if (out.grad_edge) edges.write(out.grad_edge, rows.id, edges.edge, s.wide);
  }

  void finish(const Run& row, const A* state, const Space<T>& s) const {
    const A *values = state, *sums = state + edges.summed.size();
    const T* x = p.src.template at<T>(0, row.row);
    if (Score::kPerHead && weights)
      add_scaled_if_any(edges.scored, kept.sums + row.slot * slot_size(), sums, x);
    if (out.grad_value) edges.write(out.grad_value, row.row, edges.summed, values);
    if (!out.grad_src) return;
    const bool own = out.own && row.row < p.n_dst;
    for_columns(edges.scored, [&](std::int64_t h, std::int64_t at, std::int64_t c, auto part) {
      Pack<A> gradient = Score::kSeparateValues ? Pack<A>{} : load(values + at);
      if constexpr (Score::kPerHead) {
        gradient += sums[h] * load(score.source.get() + at);
        if (own) {
          const A slope = kept.of(row.row)[kSlope * heads + h];
          gradient += slope * load(score.destination.get() + at);
        }
      } else {
        gradient += load(sums + at);
        if (own)
          gradient += part.load(kept.own + row.row * kept.own_row + h * edges.scored.width + c);
      }
      store(s.wide + at, gradient);
    });
    edges.write(out.grad_src, row.row, edges.scored, s.wide);
  }

  void run(const Pieces& pieces, std::int64_t work, const Spaces<T, kPacks>& spaces) const {
    for_runs<A>(
        out.rev_offsets, p.n_src, pieces, work, state_size(),
        [&](const Run& run, A* state) { walk(run, state, spaces.of(run)); },
        [](std::int64_t) -> A* { return nullptr; }, AddStates<A>{state_size()},
        [&](const Run& row, A* state) { finish(row, state, spaces.of(row)); });
  }
};

}  // namespace
}  // namespace edgegrad::EG_ISA
