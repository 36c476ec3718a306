// What both halves of attention need of one edge: its rows, logits and coefficients.
// Included only by files compiled per instruction set.
#pragma once
#include "attention.h"
#include "common/activation.h"
#include "common/softmax.h"
#include "heads.h"
#include "row_loop.h"
#include "simd_math.h"

namespace edgegrad::EG_ISA {
namespace {

struct PackExp {
  static EG_INLINE Pack<float> of(Pack<float> x) { return exp_pack<float>(x); }
  static EG_INLINE Pack<double> of(Pack<double> x) { return exp_pack<double>(x); }
};

// The rows an edge joins; `value` is what its coefficient multiplies.
template <typename T> struct EdgeRows {
  std::int64_t id;
  const T *src, *dst, *value, *edge;  // edge: null without edge features
};

// Scratch of one thread, for edges and rows; all of it padded.
template <typename A> struct Space {
  A *products, *direction, *values, *upstream, *wide, *wide2;      // a row of features each
  A *logits, *source, *destination, *alpha, *dots, *delta, *sums;  // a number per head each
  void* blank;                                                     // kBlanks rows of features
};

// What backward keeps of a destination, `heads` numbers each.
enum DstField { kMax, kInverse, kShift, kMean, kScore, kSlope, kDstFields };

enum class Side { kNone, kDestination, kSource };

constexpr int kBlanks = 3;

template <typename T> struct Edges {
  using A = accum_t<T>;
  using Problem = Attention::Problem;
  static constexpr int kWidth = kLanes<A>;

  const Problem& p;
  std::int64_t heads = p.heads, width = p.dim / p.heads, value_width = p.value_dim / p.heads,
               edge_width = p.edge_dim / p.heads;
  std::int64_t row_size = padded<A>(widest()), head_size = padded<A>(heads);

  std::int64_t widest() const {
    const std::int64_t n = p.dim > p.value_dim ? p.dim : p.value_dim;
    return n > p.edge_dim ? n : p.edge_dim;
  }

  static constexpr int kRows = 6, kHeads = 7;
  std::int64_t space_size() const {
    return kRows * row_size + kHeads * head_size + kBlanks * row_size;
  }
  Space<A> space(A* from) const {
    const auto take = [&](std::int64_t n) { return from += n, from - n; };
    const std::int64_t r = row_size, h = head_size;
    return {take(r), take(r), take(r), take(r), take(r), take(r), take(h),
            take(h), take(h), take(h), take(h), take(h), take(h), take(kBlanks * r)};
  }

  std::int64_t id(std::int64_t e) const { return p.edge_ids.data == nullptr ? e : p.edge_ids[e]; }

  EdgeRows<T> rows(std::int64_t e, std::int64_t src, std::int64_t dst) const {
    const std::int64_t edge = id(e);
    return {edge, p.src.at<T>(0, src), p.dst.at<T>(0, dst), p.value.at<T>(0, src),
            p.edge.data == nullptr ? nullptr : p.edge.at<T>(0, edge)};
  }

  A bias(std::int64_t edge, std::int64_t h) const {
    if (p.bias.dtype == p.dtype) return widen(p.bias.rows.template at<T>(0, edge)[h]);
    return A(p.bias.rows.template at<float>(0, edge)[h]);
  }

  // Heads that a bias of -inf masks: nothing of the edge may reach them, not even a NaN.
  std::int64_t count_masked(std::int64_t edge) const {
    std::int64_t n = 0;
    for (std::int64_t h = 0; p.bias && h < heads; ++h) n += bias(edge, h) == minus_infinity<A>();
    return n;
  }

  // Exchanges the rows of a partly masked edge for copies with zeros in the masked heads.
  void blank(EdgeRows<T>* rows, void* to) const {
    T* copy = static_cast<T*>(to);
    const auto exchange = [&](const T** row, std::int64_t columns) {
      for (std::int64_t h = 0; h < heads; ++h) {
        const bool masked = bias(rows->id, h) == minus_infinity<A>();
        for (std::int64_t c = h * columns; c < (h + 1) * columns; ++c)
          copy[c] = masked ? narrow<T>(A(0)) : (*row)[c];
      }
      *row = copy;
      copy += row_size;
    };
    const bool same = rows->src == rows->value;
    exchange(&rows->src, width);
    same ? void(rows->value = rows->src) : exchange(&rows->value, value_width);
    if (rows->edge != nullptr) exchange(&rows->edge, edge_width);
  }

  void add_bias(std::int64_t edge, A* logits) const {
    for (std::int64_t h = 0; p.bias && h < heads; ++h) {
      const A b = bias(edge, h);
      logits[h] = b == minus_infinity<A>() ? b : logits[h] + b;
    }
  }

  // alpha = exp(logit - max) / sum, from a destination's two numbers per head
  void coefficients(const A* logits, const A* max, const A* inverse, A* alpha) const {
    const Pack<A> masked = Pack<A>{} + minus_infinity<A>();
    for (std::int64_t h = 0; h < heads; h += kWidth) {
      const Pack<A> l = load(logits + h);
      const Pack<A> term = PackExp::of(l - load(max + h)) * load(inverse + h);
      store(alpha + h, Pack<A>(l == masked ? Pack<A>{} : term));
    }
  }

  static void write(const Attention::Array& to, DType dtype, std::int64_t row, std::int64_t column,
                    const A* from, std::int64_t n) {
    if (to.dtype == dtype) {
      write_row(to.rows.template at<T>(0, row) + column, from, n, A(1));
    } else {
      float* place = to.rows.template at<float>(0, row) + column;
      for (std::int64_t c = 0; c < n; ++c) place[c] = static_cast<float>(from[c]);
    }
  }

  // Chunks of rows that weight gradients are added up in: few, so that their sums are small.
  static std::int64_t chunk_work(const Ids& offsets, std::int64_t n_rows) {
    constexpr std::int64_t kMostChunks = 256;
    const std::int64_t work = (offsets[n_rows] + n_rows) / kMostChunks + 1;
    return work > kChunkWork ? work : kChunkWork;
  }
};

}  // namespace
}  // namespace edgegrad::EG_ISA
