// Attention, backward: once by destination for what belongs to a row's softmax, once by source
// over the reverse graph for everything that belongs to a source or to an edge.
// Included only by files compiled per instruction set.
#pragma once
#include "attention_edges.h"

namespace edgegrad::EG_ISA {
namespace {

template <typename T, template <typename> class ScoreOf> struct AttentionBackward {
  using A = accum_t<T>;
  using Problem = Attention::Problem;
  using Score = ScoreOf<T>;
  static constexpr int kWidth = kLanes<A>;

  const Problem& p;
  const Attention::Backward& out;
  Edges<T> edges{p};
  Score score{p};
  std::int64_t heads = p.heads, head_size = edges.head_size;
  // Numbers per row of a logit's derivative: one per head (GAT), or one per feature.
  std::int64_t directions = Score::kPerHead ? heads : p.dim;
  std::int64_t direction_size = padded<A>(directions);
  std::int64_t spread = Score::kPerHead ? 1 : edges.width;

  // Scratch of a thread: an edge's, and the fields of a destination.
  std::int64_t thread_size() const { return edges.space_size() + padded<A>(kDstFields * heads); }

  // ---- one edge

  // Scratch that lives through both halves.
  struct Kept {
    A* destinations;  // n_dst x kDstFields x heads
    A* own;           // gradient of destinations that are sources
    std::int64_t own_row;
    A *dst_sums, *src_sums;  // of weight gradients: one row per slot
  };

  A* fields(const Kept& kept, std::int64_t r) const {
    return kept.destinations + r * kDstFields * heads;
  }

  // The gradient that reaches each head's values, in masked heads of `rows` 0.
  void upstream(std::int64_t r, const EdgeRows<T>* rows, A* to) const {
    const T* g = out.grad_output.at<T>(0, r);
    if (p.concat) {
      for (std::int64_t c = 0; c < p.value_dim; c += kWidth)
        store(to + c, load_row(g, c, p.value_dim));
    } else {
      const A share = A(1) / A(heads);
      for (std::int64_t h = 0, c = 0; h < heads; ++h)
        for (std::int64_t i = 0; i < edges.value_width; ++i, ++c) to[c] = widen(g[i]) * share;
    }
    for (std::int64_t h = 0; rows != nullptr && h < heads; ++h)
      if (edges.bias(rows->id, h) == minus_infinity<A>())
        for (std::int64_t c = 0; c < edges.value_width; ++c) to[h * edges.value_width + c] = A(0);
  }

  A attention_gradient(std::int64_t edge, std::int64_t h) const {
    if (!out.grad_attention) return A(0);
    if (out.grad_attention.dtype == DType::float64)
      return A(out.grad_attention.rows.template at<double>(0, h)[edge]);
    return A(out.grad_attention.rows.template at<float>(0, h)[edge]);
  }

  // dots[h] = <upstream, value of the edge>
  void value_dots(const EdgeRows<T>& rows, const Space<A>& s) const {
    for (std::int64_t c = 0; c < p.value_dim; c += kWidth) {
      Pack<A> value = load_row(rows.value, c, p.value_dim);
      if (Score::kEdgeInValue && rows.edge != nullptr) value += load_row(rows.edge, c, p.value_dim);
      store(s.products + c, Pack<A>(load(s.upstream + c) * value));
    }
    sum_heads(s.products, heads, edges.value_width, s.dots);
  }

  // Coefficients, and in `dots` the gradient of each less the row's shift.
  void coefficients(const EdgeRows<T>& rows, const A* of_dst, const Space<A>& s) const {
    edges.add_bias(rows.id, s.logits);
    edges.coefficients(s.logits, of_dst + kMax * heads, of_dst + kInverse * heads, s.alpha);
    value_dots(rows, s);
    for (std::int64_t h = 0; h < heads; ++h) {
      const A m = p.dropout.factor<A>(rows.id, static_cast<int>(h));
      s.dots[h] = m * (s.dots[h] + attention_gradient(rows.id, h)) - of_dst[kShift * heads + h];
    }
  }

  // ---- by destination

  // Fills the row's fields but its mean, and its upstream gradient.
  void prepare(std::int64_t r, const Space<A>& s, A* of_dst) const {
    upstream(r, nullptr, s.upstream);
    score.of_destination(p.dst.at<T>(0, r), s, s.destination);
    for (std::int64_t h = 0; h < heads; ++h) {
      of_dst[kMax * heads + h] = out.stats.at<A>(0, r)[h];
      of_dst[kInverse * heads + h] = SoftmaxPart<A>{A(0), out.stats.at<A>(1, r)[h]}.inverse();
      of_dst[kScore * heads + h] = s.destination[h];
    }
    shift(r, s, of_dst + kShift * heads);
  }

  // Any constant may be taken from the gradients of a row's coefficients. One near their mean keeps
  // what features have in common out of the sums: <upstream, output>, or without the output
  // <upstream, first value>.
  void shift(std::int64_t r, const Space<A>& s, A* to) const {
    const std::int64_t first = p.offsets[r];
    const T* row = out.output.data != nullptr ? out.output.at<T>(0, r)
                   : first < p.offsets[r + 1] ? p.value.at<T>(0, p.indices[first])
                                              : nullptr;
    for (std::int64_t h = 0; h < heads; ++h) {
      const std::int64_t from = out.output.data != nullptr && !p.concat ? 0 : h * edges.value_width;
      A dot = A(0);
      for (std::int64_t c = 0; row != nullptr && c < edges.value_width; ++c)
        dot += s.upstream[h * edges.value_width + c] * A(widen(row[from + c]));
      to[h] = dot - dot == A(0) ? dot : A(0);  // a masked first edge may hold anything
    }
  }

  // State: mean of the gradients, then the sums with and without them of the logits' derivatives.
  std::int64_t dst_state_size() const { return head_size + 2 * direction_size; }

  void walk_destination(const Run& run, A* state, const Space<A>& s, A* of_dst) const {
    A *mean = state, *with = state + head_size, *without = with + direction_size;
    for (std::int64_t c = 0; c < dst_state_size(); ++c) state[c] = A(0);
    prepare(run.row, s, of_dst);
    for (std::int64_t e = run.begin; e < run.end; ++e) {
      EdgeRows<T> rows = edges.rows(e, p.indices[e], run.row);
      if (e + kAhead < p.n_edges)
        prefetch_row(p.value.at<T>(0, p.indices[e + kAhead]), p.value_dim);
      const std::int64_t masked = edges.count_masked(rows.id);
      if (masked == heads) continue;
      if (masked > 0) edges.blank(&rows, s.blank);
      score.of_source(rows.src, s, s.source);
      score.logits(rows, Side::kDestination, s, s.logits);
      coefficients(rows, of_dst, s);
      for (std::int64_t h = 0; h < heads; ++h) {
        s.delta[h] = s.alpha[h] * s.dots[h];
        mean[h] += s.delta[h];
      }
      expand_heads(s.delta, heads, spread, s.wide);
      add_products(with, s.wide, s.direction, directions);
      expand_heads(s.alpha, heads, spread, s.wide);
      add_products(without, s.wide, s.direction, directions);
    }
  }

  void finish_destination(const Run& run, const A* state, const Space<A>& s, A* of_dst,
                          const Kept& kept) const {
    const A *mean = state, *with = state + head_size, *without = with + direction_size;
    // An only edge has coefficient 1 whatever its logit.
    const bool only = run.end - run.begin == 1;
    for (std::int64_t h = 0; h < heads; ++h) of_dst[kMean * heads + h] = mean[h];
    expand_heads(mean, heads, spread, s.wide);
    A* gradient = Score::kPerHead ? of_dst + kSlope * heads : s.wide2;
    for (std::int64_t c = 0; c < directions; ++c)
      gradient[c] = only ? A(0) : with[c] - s.wide[c] * without[c];
    if constexpr (Score::kPerHead) {
      score.times_destination(gradient, s, s.wide2);
      if (kept.dst_sums != nullptr) {
        expand_heads(gradient, heads, edges.width, s.wide);
        add_row_products(kept.dst_sums + run.slot * edges.row_size, s.wide, p.dst.at<T>(0, run.row),
                         p.dim);
      }
    }
    if (out.grad_dst) edges.write(out.grad_dst, p.dtype, run.row, 0, s.wide2, p.dim);
    if (kept.own != nullptr) copy_row(kept.own + run.row * kept.own_row, s.wide2, p.dim);
  }

  // ---- by source

  // State: what values get, then the sums of the logits' derivatives.
  std::int64_t src_state_size() const { return edges.row_size + direction_size; }

  void walk_source(const Run& run, A* state, const Space<A>& s, const Kept& kept) const {
    A *values = state, *sums = state + edges.row_size;
    for (std::int64_t c = 0; c < src_state_size(); ++c) state[c] = A(0);
    A* weight_sums = kept.src_sums == nullptr ? nullptr : kept.src_sums + run.slot * weights_size();
    const Ids &dst = out.rev_dst, &position = out.rev_position;
    score.of_source(p.src.at<T>(0, run.row), s, s.source);
    for (std::int64_t r = run.begin; r < run.end; ++r) {
      const std::int64_t i = dst[r];
      if (r + kAhead < p.n_edges) {
        prefetch_row(out.grad_output.at<T>(0, dst[r + kAhead]),
                     p.value_dim / (p.concat ? 1 : heads));
        prefetch_row(fields(kept, dst[r + kAhead]), kDstFields * heads);
      }
      EdgeRows<T> rows = edges.rows(position[r], run.row, i);
      const std::int64_t masked = edges.count_masked(rows.id);
      if (masked == heads) {
        write_masked(rows.id, s);
        continue;
      }
      if (masked > 0) {
        edges.blank(&rows, s.blank);
        score.of_source(rows.src, s, s.source);
      }
      const A* of_dst = fields(kept, i);
      for (std::int64_t h = 0; h < heads; ++h) s.destination[h] = of_dst[kScore * heads + h];
      upstream(i, masked > 0 ? &rows : nullptr, s.upstream);
      score.logits(rows, Side::kSource, s, s.logits);
      coefficients(rows, of_dst, s);
      const bool only = p.offsets[i + 1] - p.offsets[i] == 1;
      for (std::int64_t h = 0; h < heads; ++h) {
        s.delta[h] = only ? A(0) : s.alpha[h] * (s.dots[h] - of_dst[kMean * heads + h]);
        s.alpha[h] *= p.dropout.factor<A>(rows.id, static_cast<int>(h));
      }
      expand_heads(s.alpha, heads, edges.value_width, s.wide);
      add_products(values, s.wide, s.upstream, p.value_dim);
      expand_heads(s.delta, heads, spread, s.wide2);
      add_products(sums, s.wide2, s.direction, directions);
      if (out.grad_bias) edges.write(out.grad_bias, p.dtype, rows.id, 0, s.delta, heads);
      if (out.grad_edge || weight_sums != nullptr) edge_gradients(rows, s, weight_sums);
      if (masked > 0) score.of_source(p.src.at<T>(0, run.row), s, s.source);
    }
  }

  void write_masked(std::int64_t edge, const Space<A>& s) const {
    for (std::int64_t c = 0; c < edges.row_size; ++c) s.wide[c] = A(0);
    if (out.grad_bias) edges.write(out.grad_bias, p.dtype, edge, 0, s.wide, heads);
    if (out.grad_edge) edges.write(out.grad_edge, p.dtype, edge, 0, s.wide, p.edge_dim);
  }

  // `wide` holds the coefficients, `wide2` delta, as wide as the derivatives are.
  void edge_gradients(const EdgeRows<T>& rows, const Space<A>& s, A* weight_sums) const {
    if constexpr (Score::kPerHead) {
      if (rows.edge == nullptr) return;
      for (std::int64_t h = 0; h < heads; ++h) s.sums[h] = s.delta[h] * s.direction[h];
      expand_heads(s.sums, heads, edges.edge_width, s.wide);
      if (weight_sums != nullptr)
        add_row_products(weight_sums + edges.row_size, s.wide, rows.edge, p.edge_dim);
      score.times_edge(s.wide, s.products);
    } else {
      if (weight_sums != nullptr) add_products(weight_sums, s.wide2, s.values, p.dim);
      if (!out.grad_edge) return;
      for (std::int64_t c = 0; c < p.dim; c += kWidth) {
        Pack<A> gradient = load(s.wide2 + c) * load(s.direction + c);
        if (Score::kEdgeInValue) gradient += load(s.wide + c) * load(s.upstream + c);
        store(s.products + c, gradient);
      }
    }
    if (out.grad_edge) edges.write(out.grad_edge, p.dtype, rows.id, 0, s.products, p.edge_dim);
  }

  void finish_source(const Run& run, A* state, const Space<A>& s, const Kept& kept) const {
    A *values = state, *sums = state + edges.row_size;
    if constexpr (Score::kPerHead) {
      if (kept.src_sums != nullptr) {
        expand_heads(sums, heads, edges.width, s.wide);
        add_row_products(kept.src_sums + run.slot * weights_size(), s.wide, p.src.at<T>(0, run.row),
                         p.dim);
      }
      score.times_source(sums, s, s.wide2);
      sums = s.wide2;
    }
    if (out.grad_value) edges.write(out.grad_value, p.dtype, run.row, 0, values, p.value_dim);
    if (!out.grad_src) return;
    const bool own = kept.own != nullptr && run.row < p.n_dst;
    const A* from = own ? kept.own + run.row * kept.own_row : nullptr;
    for (std::int64_t c = 0; c < p.dim; ++c) {
      const A value = Score::kSeparateValues ? A(0) : values[c];
      sums[c] = value + sums[c] + (own ? from[c] : A(0));
    }
    edges.write(out.grad_src, p.dtype, run.row, 0, sums, p.dim);
  }

  // ---- weights, and the whole

  static constexpr std::int64_t kAhead = 4;

  // A slot of sums by source: those of the source part, then (GAT) of the edge part.
  std::int64_t weights_size() const {
    return Score::kPerHead ? 2 * edges.row_size : edges.row_size;
  }

  // A weight gradient is the sum over slots, in order.
  void write_weights(const A* sums, std::int64_t slots, std::int64_t size, std::int64_t at,
                     std::int64_t column, std::int64_t n, A* total) const {
    for (std::int64_t c = 0; c < n; ++c) {
      total[c] = A(0);
      for (std::int64_t i = 0; i < slots; ++i) total[c] += sums[i * size + at + c];
    }
    edges.write(out.grad_weights, p.dtype, 0, column, total, n);
  }

  void run(const Pieces& by_dst, const Pieces& by_src) const {
    const bool weights = bool(out.grad_weights);
    const bool sources =
        weights || out.grad_src || out.grad_value || out.grad_edge || out.grad_bias;
    const std::int64_t dst_work = edges.chunk_work(p.offsets, p.n_dst);
    const std::int64_t dst_slots = count_chunks(p.offsets, p.n_dst, dst_work) + by_dst.count;
    const bool own = out.own && out.grad_src, in_place = out.grad_src.dtype == accumulator();
    const Scratch<A> spaces(num_threads() * thread_size());
    const Scratch<A> destinations(p.n_dst * kDstFields * heads + kWidth);
    const Scratch<A> own_rows(own && !in_place ? p.n_dst * p.dim : 0);
    const Scratch<A> dst_sums(weights && Score::kPerHead ? dst_slots * edges.row_size : 0);
    Kept kept{destinations.get(), nullptr, p.dim, nullptr, nullptr};
    if (own) {
      kept.own = in_place ? out.grad_src.rows.template at<A>(0, 0) : own_rows.get();
      kept.own_row = in_place ? out.grad_src.rows.row : p.dim;
    }
    if (weights && Score::kPerHead) {
      kept.dst_sums = dst_sums.get();
      for (std::int64_t i = 0; i < dst_slots * edges.row_size; ++i) dst_sums[i] = A(0);
    }
    const auto memory = [&](const Run& run) { return spaces.get() + run.thread * thread_size(); };
    for_runs<A>(
        p.offsets, p.n_dst, by_dst, dst_work, dst_state_size(),
        [&](const Run& run, A* state) {
          // Pieces of a row may be walked at once, each with fields of its own.
          walk_destination(run, state, edges.space(memory(run)), memory(run) + edges.space_size());
        },
        [](std::int64_t) -> A* { return nullptr; },
        [&](A* total, const A* other) {
          for (std::int64_t c = 0; c < dst_state_size(); ++c) total[c] += other[c];
        },
        [&](const Run& run, A* state) {
          A* of_dst = fields(kept, run.row);
          const Space<A> space = edges.space(memory(run));
          prepare(run.row, space, of_dst);
          finish_destination(run, state, space, of_dst, kept);
        });
    if (sources) run_sources(by_src, kept, spaces.get());
    if (weights && Score::kPerHead)
      write_weights(dst_sums.get(), dst_slots, edges.row_size, 0, p.dim, p.dim,
                    edges.space(spaces.get()).wide);
  }

  void run_sources(const Pieces& pieces, Kept kept, A* spaces) const {
    const std::int64_t work = edges.chunk_work(out.rev_offsets, p.n_src), size = weights_size();
    const std::int64_t slots = count_chunks(out.rev_offsets, p.n_src, work) + pieces.count;
    const bool weights = bool(out.grad_weights);
    const Scratch<A> sums(weights ? slots * size : 0);
    for (std::int64_t i = 0; weights && i < slots * size; ++i) sums[i] = A(0);
    kept.src_sums = weights ? sums.get() : nullptr;
    const auto space = [&](const Run& run) {
      return edges.space(spaces + run.thread * thread_size());
    };
    for_runs<A>(
        out.rev_offsets, p.n_src, pieces, work, src_state_size(),
        [&](const Run& run, A* state) { walk_source(run, state, space(run), kept); },
        [](std::int64_t) -> A* { return nullptr; },
        [&](A* total, const A* other) {
          for (std::int64_t c = 0; c < src_state_size(); ++c) total[c] += other[c];
        },
        [&](const Run& run, A* state) { finish_source(run, state, space(run), kept); });
    if (!weights) return;
    A* total = edges.space(spaces).wide;
    write_weights(sums.get(), slots, size, 0, 0, p.dim, total);
    if (Score::kPerHead && p.edge_dim > 0)
      write_weights(sums.get(), slots, size, edges.row_size, 2 * p.dim, p.edge_dim, total);
  }

  static constexpr DType accumulator() {
    return sizeof(A) == sizeof(double) ? DType::float64 : DType::float32;
  }
};

}  // namespace
}  // namespace edgegrad::EG_ISA
