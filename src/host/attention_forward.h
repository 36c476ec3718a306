// Attention, forward: softmax over blocks of edges with a running maximum, one gather of values.
// Included only by files compiled per instruction set.
#pragma once
#include "attention_edges.h"

namespace edgegrad::EG_ISA {
namespace {

template <typename T, template <typename> class ScoreOf> struct AttentionForward {
  using A = accum_t<T>;
  using Problem = Attention::Problem;
  using Score = ScoreOf<T>;
  static constexpr int kWidth = kLanes<A>;
  static constexpr int kBlockEdges = 16;

  const Problem& p;
  const Attention::Forward& out;
  Edges<T> edges{p};
  Score score{p};
  std::int64_t heads = p.heads, head_size = edges.head_size;
  std::int64_t state_size = 2 * head_size + edges.row_size;  // maxima, sums, values

  // Beside the edge's scratch: logits and wide coefficients of a block, its blanked rows.
  struct Block {
    Space<A> edge;
    A *logits, *wide, *blank;
  };
  std::int64_t logits_size() const { return padded<A>(kBlockEdges * heads); }
  std::int64_t block_size() const {
    return edges.space_size() + logits_size() + kBlockEdges * (1 + kBlanks) * edges.row_size;
  }
  Block block(A* from) const {
    Block b{edges.space(from), from + edges.space_size(), nullptr, nullptr};
    b.wide = b.logits + logits_size();
    b.blank = b.wide + kBlockEdges * edges.row_size;
    return b;
  }

  void destination(std::int64_t r, const Space<A>& space) const {
    score.of_destination(p.dst.at<T>(0, r), space, space.destination);
  }

  // The rows and logits of up to a block of edges, masked ones left out; returns their number.
  int gather(const Run& run, std::int64_t first, std::int64_t last, const Block& b,
             EdgeRows<T>* rows) const {
    int n = 0;
    for (std::int64_t e = first; e < last; ++e) {
      const std::int64_t ahead = e + kBlockEdges;
      if (ahead < p.n_edges) prefetch_row(p.value.at<T>(0, p.indices[ahead]), p.value_dim);
      rows[n] = edges.rows(e, p.indices[e], run.row);
      const std::int64_t masked = edges.count_masked(rows[n].id);
      if (masked == heads && heads > 0) continue;
      if (masked > 0) edges.blank(&rows[n], b.blank + n * kBlanks * edges.row_size);
      score.of_source(rows[n].src, b.edge, b.edge.source);
      score.logits(rows[n], Side::kNone, b.edge, b.logits + n * heads);
      edges.add_bias(rows[n].id, b.logits + n * heads);
      ++n;
    }
    return n;
  }

  void walk(const Run& run, A* state, const Block& b) const {
    A *max = state, *sum = state + head_size, *values = state + 2 * head_size;
    for (std::int64_t h = 0; h < heads; ++h) max[h] = minus_infinity<A>(), sum[h] = A(0);
    for (std::int64_t c = 0; c < edges.row_size; ++c) values[c] = A(0);
    if (run.begin == run.end) return;
    destination(run.row, b.edge);
    EdgeRows<T> rows[kBlockEdges];
    for (std::int64_t first = run.begin; first < run.end; first += kBlockEdges) {
      const std::int64_t last = first + kBlockEdges < run.end ? first + kBlockEdges : run.end;
      const int n = gather(run, first, last, b, rows);
      rescale(b, n, max, sum, values);
      for (int i = 0; i < n; ++i) {
        A* k = b.logits + i * heads;
        for (std::int64_t h = 0; h < heads; ++h) {
          sum[h] += k[h];
          if (p.dropout.kind != kKeepAll)
            k[h] *= p.dropout.factor<A>(rows[i].id, static_cast<int>(h));
        }
        expand_heads(k, heads, edges.value_width, b.wide + i * edges.row_size);
      }
      add_values(values, rows, b.wide, n);
    }
  }

  // Turns a block's logits into exponentials beside the new maximum, and what was summed before
  // with them.
  void rescale(const Block& b, int n, A* max, A* sum, A* values) const {
    bool changed = false;
    for (std::int64_t h = 0; h < heads; ++h) {
      A top = max[h];
      for (int i = 0; i < n; ++i)
        top = b.logits[i * heads + h] > top ? b.logits[i * heads + h] : top;
      const A scale = top == max[h] ? A(1) : softmax_term(max[h], top);
      changed = changed || top != max[h];
      b.edge.delta[h] = scale;
      sum[h] *= scale;
      max[h] = top;
      const A shift = shift_of(top);
      for (int i = 0; i < n; ++i) b.logits[i * heads + h] -= shift;
    }
    for (std::int64_t i = 0; i < n * heads; i += kWidth)
      store(b.logits + i, PackExp::of(load(b.logits + i)));
    if (!changed) return;
    expand_heads(b.edge.delta, heads, edges.value_width, b.edge.wide);
    for (std::int64_t c = 0; c < p.value_dim; c += kWidth)
      store(values + c, Pack<A>(load(values + c) * load(b.edge.wide + c)));
  }

  // values += sum over edges of wide coefficient * row, kTile packs at a time in registers
  void add_values(A* values, const EdgeRows<T>* rows, const A* wide, int n) const {
    constexpr int kTile = 4;
    const std::int64_t dim = p.value_dim;
    std::int64_t c = 0;
    for (; c + kTile * kWidth <= dim; c += kTile * kWidth)
      add_tile<kTile>(values, rows, wide, n, c);
    for (; c < dim; c += kWidth) add_tile<1>(values, rows, wide, n, c);
  }

  template <int NV>
  EG_INLINE void
  add_tile(A* values, const EdgeRows<T>* rows, const A* wide, int n, std::int64_t c) const {
    Pack<A> acc[NV];
    for (int v = 0; v < NV; ++v) acc[v] = load(values + c + v * kWidth);
    for (int i = 0; i < n; ++i) {
      const A* k = wide + i * edges.row_size + c;
      for (int v = 0; v < NV; ++v) {
        Pack<A> x =
            NV > 1 ? load(rows[i].value + c + v * kWidth) : load_row(rows[i].value, c, p.value_dim);
        if (Score::kEdgeInValue && rows[i].edge != nullptr)
          x +=
              NV > 1 ? load(rows[i].edge + c + v * kWidth) : load_row(rows[i].edge, c, p.value_dim);
        acc[v] += load(k + v * kWidth) * x;
      }
    }
    for (int v = 0; v < NV; ++v) store(values + c + v * kWidth, acc[v]);
  }

  void merge(A* total, const A* other) const {
    for (std::int64_t h = 0; h < heads; ++h) {
      const auto joined =
          join<A>({total[h], total[head_size + h]}, {other[h], other[head_size + h]});
      total[h] = joined.part.max, total[head_size + h] = joined.part.sum;
      for (std::int64_t c = h * edges.value_width; c < (h + 1) * edges.value_width; ++c) {
        A& to = total[2 * head_size + c];
        to = to * joined.scale_a + other[2 * head_size + c] * joined.scale_b;
      }
    }
  }

  void finish(const Run& run, A* state, const Block& b) const {
    A *max = state, *sum = state + head_size, *values = state + 2 * head_size;
    for (std::int64_t h = 0; h < heads; ++h)
      b.edge.alpha[h] = SoftmaxPart<A>{max[h], sum[h]}.inverse() / (p.concat ? A(1) : A(heads));
    expand_heads(b.edge.alpha, heads, edges.value_width, b.edge.wide);
    T* to = out.output.at<T>(0, run.row);
    if (p.concat) {
      for (std::int64_t c = 0; c < p.value_dim; ++c) to[c] = narrow<T>(values[c] * b.edge.wide[c]);
    } else {
      for (std::int64_t c = 0; c < edges.value_width; ++c) {
        A mean = A(0);
        for (std::int64_t at = c; at < p.value_dim; at += edges.value_width)
          mean += values[at] * b.edge.wide[at];
        to[c] = narrow<T>(mean);
      }
    }
    if (out.stats.data != nullptr) {
      copy_row(out.stats.at<A>(0, run.row), max, heads);
      copy_row(out.stats.at<A>(1, run.row), sum, heads);
    }
    if (out.attention) write_attention(run, max, sum, b);
  }

  // Coefficients need the whole row's maximum and sum: its logits are made once more.
  void write_attention(const Run& run, const A* max, const A* sum, const Block& b) const {
    const Space<A>& space = b.edge;
    destination(run.row, space);
    for (std::int64_t h = 0; h < heads; ++h)
      space.dots[h] = SoftmaxPart<A>{max[h], sum[h]}.inverse();
    for (std::int64_t e = run.begin; e < run.end; ++e) {
      EdgeRows<T> rows = edges.rows(e, p.indices[e], run.row);
      score.of_source(rows.src, space, space.source);
      score.logits(rows, Side::kNone, space, space.logits);
      edges.add_bias(rows.id, space.logits);
      edges.coefficients(space.logits, max, space.dots, space.alpha);
      for (std::int64_t h = 0; h < heads; ++h) {
        const A a = space.alpha[h] * p.dropout.factor<A>(rows.id, static_cast<int>(h));
        if (out.attention.dtype == DType::float64) {
          out.attention.rows.template at<double>(0, h)[rows.id] = double(a);
        } else {
          out.attention.rows.template at<float>(0, h)[rows.id] = float(a);
        }
      }
    }
  }

  void run(const Pieces& pieces) const {
    const Scratch<A> blocks(num_threads() * block_size());
    const auto of = [&](const Run& run) { return block(blocks.get() + run.thread * block_size()); };
    for_runs<A>(
        p.offsets, p.n_dst, pieces, kChunkWork, state_size,
        [&](const Run& run, A* state) { walk(run, state, of(run)); },
        [](std::int64_t) -> A* { return nullptr; },
        [&](A* total, const A* other) { merge(total, other); },
        [&](const Run& run, A* state) { finish(run, state, of(run)); });
  }
};

}  // namespace
}  // namespace edgegrad::EG_ISA
