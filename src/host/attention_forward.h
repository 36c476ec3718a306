// Attention, forward: softmax over blocks of edges with a running maximum, one gather of values.
// Included only by files compiled per instruction set.
#pragma once
#include "attention_edges.h"

namespace edgegrad::EG_ISA {
namespace {

template <typename T, int kPacks, template <typename, int> class ScoreOf> struct AttentionForward {
  using A = accum_t<T>;
  using Problem = Attention::Problem;
  using Score = ScoreOf<T, kPacks>;
  static constexpr int kWidth = kLanes<A>;
  static constexpr int kBlockEdges = 16;

  const Problem& p;
  const Attention::Forward& out;
  Edges<T, kPacks> edges{p};
  Score score{edges};
  std::int64_t heads = p.heads, numbers = edges.numbers;
  std::int64_t state_size = 2 * numbers + edges.summed.size();  // maxima, sums, values

  // Edges whose values are added together, with their logits and then their coefficients.
  struct Block {
    EdgeRows<T> rows[kBlockEdges];
    int n;
    A* logits;  // edges x heads
  };

  // Fills the block from edge e on and returns the edge that follows. Masked edges are left out;
  // one that is masked in some heads is alone in its block.
  std::int64_t gather(std::int64_t e, std::int64_t end, const Space<T>& s, Block* b) const {
    for (b->n = 0; e < end && b->n < kBlockEdges; ++e) {
      EdgeRows<T>& rows = b->rows[b->n] = edges.rows_by_destination(e);
      const std::int64_t masked = edges.read_bias(rows.id, s);
      if (masked == heads) continue;
      if (masked > 0 && b->n > 0) return e;
      score.template logits<Walk::kForward>(rows, s);
      for (std::int64_t h = 0; h < numbers; h += kWidth)
        store(b->logits + b->n * numbers + h, edges.biased(load(s.logits + h), h, s));
      ++b->n;
      if (masked == 0) continue;
      rows.value = edges.blanked(rows.value, edges.summed.width, edges.summed.width, s, s.blank);
      if (Score::kEdgeInValue && rows.edge != nullptr)
        rows.edge = edges.blanked(rows.edge, edges.edge.width, edges.edge.width, s, s.blank_edge);
      return e + 1;
    }
    return e;
  }

  void walk(const Run& run, A* state, const Space<T>& s, A* logits) const {
    A *max = state, *sum = state + numbers, *values = state + 2 * numbers;
    fill(max, numbers, minus_infinity<A>());
    fill(sum, numbers + edges.summed.size(), A(0));
    if (run.begin == run.end) return;
    score.template own<Walk::kForward>(p.dst.at<T>(0, run.row), s);
    Block block;
    block.logits = logits;
    bool first = true;
    for (std::int64_t e = run.begin; e < run.end;) {
      e = gather(e, run.end, s, &block);
      if (block.n == 0) continue;
      exponentials(block, max, sum, s.alpha);
      if (!first) scale_heads(edges.summed, values, s.alpha, values);
      first = false;
      for (int i = 0; p.dropout.kind != kKeepAll && i < block.n; ++i) {
        edges.read_factors(block.rows[i].id, s);
        for (std::int64_t h = i * numbers, j = 0; j < numbers; h += kWidth, j += kWidth)
          store(logits + h, Pack<A>(load(logits + h) * load(s.factor + j)));
      }
      add_values(values, block);
    }
  }

  // Turns logits into exponentials beside the new maximum; `scales` brings what was summed before
  // in line with them.
  void exponentials(const Block& b, A* max, A* sum, A* scales) const {
    for (std::int64_t h = 0; h < numbers; h += kWidth) {
      const Pack<A> before = load(max + h), none = Pack<A>{} + minus_infinity<A>();
      Pack<A> top = before;
      for (int i = 0; i < b.n; ++i) {
        const Pack<A> x = load(b.logits + i * numbers + h);
        top = x > top ? x : top;
      }
      const Pack<A> shift = top == none ? Pack<A>{} : top;
      const Pack<A> scale = PackExp::of(before - shift);
      Pack<A> total = load(sum + h) * scale;
      for (int i = 0; i < b.n; ++i) {
        A* at = b.logits + i * numbers + h;
        const Pack<A> term = PackExp::of(load(at) - shift);
        total += term;
        store(at, term);
      }
      store(max + h, top);
      store(sum + h, total);
      store(scales + h, scale);
    }
  }

  // values += sum over edges of coefficient * row, some packs at a time in registers
  void add_values(A* values, const Block& b) const {
    const auto& shape = edges.summed;
    if constexpr (kPacks == 1) {
      std::int64_t h = 0;
      for (; h + 8 <= heads; h += 8) add_heads<8>(values, b, h);
      for (; h + 4 <= heads; h += 4) add_heads<4>(values, b, h);
      for (; h < heads; ++h) add_heads<1>(values, b, h);
      return;
    }
    constexpr int kTile = 4;
    for (std::int64_t h = 0; h < heads; ++h) {
      A* to = values + h * shape.padded();
      std::int64_t c = 0;
      for (; c + kTile * kWidth <= shape.width; c += kTile * kWidth)
        add_tile<kTile>(to + c, b, h, h * shape.width + c, WholePack{});
      for (; c + kWidth <= shape.width; c += kWidth)
        add_tile<1>(to + c, b, h, h * shape.width + c, WholePack{});
      if (c < shape.width)
        add_tile<1>(to + c, b, h, h * shape.width + c,
                    PartOfPack{static_cast<int>(shape.width - c)});
    }
  }

  template <typename Part> EG_INLINE Pack<A>
  value(const EdgeRows<T>& rows, std::int64_t c, const Part& part) const {
    const Pack<A> v = part.load(rows.value + c);
    return Score::kEdgeInValue && rows.edge != nullptr ? v + part.load(rows.edge + c) : v;
  }

  template <int kTile, typename Part> EG_INLINE void
  add_tile(A* to, const Block& b, std::int64_t h, std::int64_t column, const Part& part) const {
    Pack<A> acc[kTile];
    for (int v = 0; v < kTile; ++v) acc[v] = load(to + v * kWidth);
    for (int i = 0; i < b.n; ++i)
      for (int v = 0; v < kTile; ++v)
        acc[v] += b.logits[i * numbers + h] * value(b.rows[i], column + v * kWidth, part);
    for (int v = 0; v < kTile; ++v) store(to + v * kWidth, acc[v]);
  }

  // Heads of one pack each.
  template <int kHeads>
  EG_INLINE void add_heads(A* values, const Block& b, std::int64_t first) const {
    Pack<A> acc[kHeads];
    for (int v = 0; v < kHeads; ++v) acc[v] = load(values + (first + v) * kWidth);
    for (int i = 0; i < b.n; ++i) {
      const A* k = b.logits + i * numbers + first;
      for (int v = 0; v < kHeads; ++v)
        acc[v] += k[v] * value(b.rows[i], (first + v) * kWidth, WholePack{});
    }
    for (int v = 0; v < kHeads; ++v) store(values + (first + v) * kWidth, acc[v]);
  }

  void merge(A* total, const A* other) const {
    const std::int64_t width = edges.summed.padded();
    for (std::int64_t h = 0; h < heads; ++h) {
      const auto joined = join<A>({total[h], total[numbers + h]}, {other[h], other[numbers + h]});
      total[h] = joined.part.max, total[numbers + h] = joined.part.sum;
      for (std::int64_t c = 2 * numbers + h * width; c < 2 * numbers + (h + 1) * width; ++c)
        total[c] = total[c] * joined.scale_a + other[c] * joined.scale_b;
    }
  }

  void finish(const Run& row, A* state, const Space<T>& s) const {
    A *max = state, *sum = state + numbers, *values = state + 2 * numbers;
    const auto& shape = edges.summed;
    for (std::int64_t h = 0; h < heads; ++h)
      s.sums[h] = SoftmaxPart<A>{max[h], sum[h]}.inverse() / (p.concat ? A(1) : A(heads));
    T* to = out.output.at<T>(0, row.row);
    if (p.concat) {
      for_columns(shape, [&](std::int64_t h, std::int64_t at, std::int64_t c, auto part) {
        part.store(to + h * shape.width + c, Pack<A>(s.sums[h] * load(values + at)));
      });
    } else {
      for_packs(shape, [&](std::int64_t c, auto part) {
        Pack<A> mean = {};
        for (std::int64_t h = 0; h < heads; ++h)
          mean += s.sums[h] * load(values + h * shape.padded() + c);
        part.store(to + c, mean);
      });
    }
    if (out.stats.data != nullptr) {
      copy_row(out.stats.at<A>(0, row.row), max, heads);
      copy_row(out.stats.at<A>(1, row.row), sum, heads);
    }
    if (out.attention) write_attention(row, max, sum, s);
  }

  // Coefficients need the whole row's maximum and sum: its logits are made once more.
  void write_attention(const Run& row, const A* max, const A* sum, const Space<T>& s) const {
    score.template own<Walk::kForward>(p.dst.at<T>(0, row.row), s);
    for (std::int64_t h = 0; h < heads; ++h) s.dots[h] = SoftmaxPart<A>{max[h], sum[h]}.inverse();
    for (std::int64_t e = row.begin; e < row.end; ++e) {
      EdgeRows<T> rows = edges.rows_by_destination(e);
      rows.id = edges.id(e);
      edges.read_bias(rows.id, s);
      edges.read_factors(rows.id, s);
      score.template logits<Walk::kForward>(rows, s);
      for (std::int64_t h = 0; h < numbers; h += kWidth)
        store(s.logits + h, edges.biased(load(s.logits + h), h, s));
      for (std::int64_t h = 0; h < heads; ++h) {
        const A a = softmax_term(s.logits[h], max[h]) * s.dots[h] * s.factor[h];
        if (out.attention.dtype == DType::float64) {
          out.attention.rows.template at<double>(0, h)[rows.id] = double(a);
        } else {
          out.attention.rows.template at<float>(0, h)[rows.id] = float(a);
        }
      }
    }
  }

  void run(const Pieces& pieces) const {
    const Spaces<T, kPacks> spaces(edges);
    const Scratch<A> logits(num_threads() * kBlockEdges * numbers);
    for_runs<A>(
        p.offsets, p.n_dst, pieces, kChunkWork, state_size,
        [&](const Run& run, A* state) {
          walk(run, state, spaces.of(run), logits.get() + run.thread * kBlockEdges * numbers);
        },
        [](std::int64_t) -> A* { return nullptr; },
        [&](A* total, const A* other) { merge(total, other); },
        [&](const Run& row, A* state) { finish(row, state, spaces.of(row)); });
  }
};

}  // namespace
}  // namespace edgegrad::EG_ISA
