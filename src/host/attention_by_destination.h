// Attention, backward by destination: the mean of the coefficients' gradients, and with it what
// belongs to the destination itself.
// Included only by files compiled per instruction set.
#pragma once
#include "attention_backward.h"

namespace edgegrad::EG_ISA {
namespace {

template <typename T, int kPacks, template <typename, int> class ScoreOf>
struct AttentionByDestination : AttentionGradient<T, kPacks, ScoreOf> {
  using Base = AttentionGradient<T, kPacks, ScoreOf>;
  using Base::direction_size, Base::edges, Base::gradient_size, Base::gradient_stride, Base::heads;
  using Base::kept, Base::kWidth, Base::numbers, Base::out, Base::p, Base::score, Base::share;
  using typename Base::A;
  using typename Base::Score;

  // Fills a destination's fields but its mean, and the scratch that its edges need.
  void prepare(const Run& row, const Space<T>& s, A* of_dst) const {
    const std::int64_t r = row.row;
    pad_row(edges.summed, s.upstream, Base::gradient_row(r), gradient_stride, share);
    score.template own<Walk::kByDestination>(p.dst.template at<T>(0, r), s);
    const bool only = std::int64_t(p.offsets[r + 1]) - std::int64_t(p.offsets[r]) == 1;
    shift(r, s);
    for (std::int64_t h = 0; h < heads; ++h) {
      const SoftmaxPart<A> part{out.stats.template at<A>(0, r)[h],
                                out.stats.template at<A>(1, r)[h]};
      of_dst[kMax * heads + h] = shift_of(part.max);
      of_dst[kInverse * heads + h] = only ? -part.inverse() : part.inverse();
      of_dst[kShift * heads + h] = s.dots[h] - s.dots[h] == A(0) ? s.dots[h] : A(0);
      if (Score::kPerHead) of_dst[kScore * heads + h] = s.own_number[h];
    }
  }

  // Any constant may be taken from the gradients of a row's coefficients. One near their mean keeps
  // what features have in common out of the sums: <upstream, output>, or without the output
  // <upstream, first value>, which may be anything where that edge is masked.
  void shift(std::int64_t r, const Space<T>& s) const {
    const std::int64_t first = p.offsets[r], width = edges.summed.width;
    if (out.output.data != nullptr) {
      dot_heads(edges.summed, s.upstream, out.output.template at<T>(0, r), gradient_stride, s.dots);
    } else if (first < p.offsets[r + 1]) {
      dot_heads(edges.summed, s.upstream, p.value.template at<T>(0, p.indices[first]), width,
                s.dots);
    } else {
      fill(s.dots, numbers, A(0));
    }
  }

  // State: mean of the gradients, then the sums with and without them of the logits' derivatives.
  std::int64_t state_size() const { return numbers + 2 * direction_size; }

  void walk(const Run& run, A* state, const Space<T>& s, A* of_dst) const {
    A *mean = state, *with = state + numbers, *without = with + direction_size;
    fill(state, state_size(), A(0));
    prepare(run, s, of_dst);
    for (std::int64_t e = run.begin; e < run.end; ++e) {
      const EdgeRows<T> rows = edges.rows_by_destination(e);
      const std::int64_t id = out.grad_attention ? edges.id(e) : rows.id;
      const std::int64_t masked = edges.read_bias(id, s);
      if (masked == heads) continue;
      edges.read_factors(id, s);
      Base::read_gamma(id, s);
      score.template logits<Walk::kByDestination>(rows, s);
      dot_heads(edges.summed, s.upstream, rows.value, edges.summed.width, s.dots);
      if (Score::kEdgeInValue && rows.edge != nullptr) add_edge_dots(rows, s);
      Base::coefficients(of_dst, A(1), s);
      if (masked > 0) Base::clear_masked(s);
      for (std::int64_t h = 0; h < heads; h += kWidth) {
        const Pack<A> alpha = load(s.alpha + h), delta = alpha * load(s.dots + h);
        store(mean + h, Pack<A>(load(mean + h) + delta));
        if constexpr (Score::kPerHead) {
          const Pack<A> slope = load(s.slope + h);
          store(with + h, Pack<A>(load(with + h) + delta * slope));
          store(without + h, Pack<A>(load(without + h) + alpha * slope));
        } else {
          store(s.delta + h, delta);
        }
      }
      if constexpr (!Score::kPerHead)
        for_columns(edges.scored, [&](std::int64_t h, std::int64_t at, std::int64_t, auto) {
          const Pack<A> direction = load(s.direction + at);
          store(with + at, Pack<A>(load(with + at) + s.delta[h] * direction));
          store(without + at, Pack<A>(load(without + at) + s.alpha[h] * direction));
        });
    }
  }

  void add_edge_dots(const EdgeRows<T>& rows, const Space<T>& s) const {
    dot_heads(edges.summed, s.upstream, rows.edge, edges.summed.width, s.sums);
    for (std::int64_t h = 0; h < heads; ++h) s.dots[h] += s.sums[h];
  }

  void finish(const Run& row, const A* state, const Space<T>& s, A* of_dst) const {
    const A *mean = state, *with = state + numbers, *without = with + direction_size;
    const bool only = row.end - row.begin == 1;
    for (std::int64_t h = 0; h < heads; ++h) of_dst[kMean * heads + h] = mean[h];
    if constexpr (Score::kPerHead) {
      A* slope = of_dst + kSlope * heads;
      for (std::int64_t h = 0; h < heads; ++h)
        slope[h] = only ? A(0) : with[h] - mean[h] * without[h];
      if (kept.sums != nullptr)
        add_scaled_if_any(edges.scored, kept.sums + row.slot * edges.row_size, slope,
                          p.dst.template at<T>(0, row.row));
      if (!out.grad_dst) return;
      scale_heads(edges.scored, s.wide, slope, score.destination.get());
    } else {
      for_columns(edges.scored, [&](std::int64_t h, std::int64_t at, std::int64_t, auto) {
        const Pack<A> gradient = load(with + at) - mean[h] * load(without + at);
        store(s.wide + at, only ? Pack<A>{} : gradient);
      });
      if (kept.own != nullptr) write_heads(edges.scored, kept.own + row.row * kept.own_row, s.wide);
    }
    if (out.grad_dst) edges.write(out.grad_dst, row.row, edges.scored, s.wide);
  }

  void run(const Pieces& pieces, std::int64_t work, const Spaces<T, kPacks>& spaces) const {
    // Pieces of a row may be walked at once, each with fields of its own.
    const Scratch<A> fields(num_threads() * kept.size + kWidth);
    for_runs<A>(
        p.offsets, p.n_dst, pieces, work, state_size(),
        [&](const Run& run, A* state) {
          A* own = fields.get() + run.thread * kept.size;
          walk(run, state, spaces.of(run), run.is_piece ? own : kept.of(run.row));
        },
        [](std::int64_t) -> A* { return nullptr; }, AddStates<A>{state_size()},
        [&](const Run& row, A* state) {
          if (row.is_piece) prepare(row, spaces.of(row), kept.of(row.row));
          finish(row, state, spaces.of(row), kept.of(row.row));
        });
  }
};

}  // namespace
}  // namespace edgegrad::EG_ISA
