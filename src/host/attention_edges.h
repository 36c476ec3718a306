// What both halves of attention need of one edge: its rows, its options, its scratch.
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

// Who walks: forward, and backward by destination, over the edges of a destination; backward by
// source over those of a source. The other end of an edge changes along a row.
enum class Walk { kForward, kByDestination, kBySource };

// The rows of an edge; `value` is what its coefficient multiplies.
template <typename T> struct EdgeRows {
  std::int64_t id;
  const T *other, *value, *edge;  // edge: null without edge features
  const accum_t<T>* number;       // the other end's score per head, where it is known
};

// Scratch of one thread, padded as heads.h says.
template <typename T> struct Space {
  using A = accum_t<T>;
  A *own, *values;           // of the row walked: features that are scored, and those summed
  A *upstream, *wide;        // the gradient of a destination's heads; anything
  A *direction, *activated;  // of a logit that is a sum over features: its terms' derivatives
                             // by the row walked, and their activations
  A *own_number, *number;    // scores of both ends
  A *logits, *slope;         // and derivatives of logits that are numbers per head
  A *bias, *factor, *gamma;  // of the edge: bias, dropout, gradient of its coefficients
  A *alpha, *dots, *delta, *sums;
  T *blank, *blank_edge;  // copies of rows with zeros in masked heads
};

template <typename T, int kPacks> struct Edges {
  using A = accum_t<T>;
  using Problem = Attention::Problem;
  using Shape = HeadShape<A, kPacks>;
  using EdgeShape = HeadShape<A, 0>;
  static constexpr int kWidth = kLanes<A>;
  static constexpr std::int64_t kAhead = 12;

  const Problem& p;
  std::int64_t heads = p.heads, numbers = padded_heads<A>(heads);
  Shape scored{heads, p.dim / heads}, summed{heads, p.value_dim / heads};
  EdgeShape edge{heads, p.edge_dim / heads};
  std::int64_t row_size = largest(scored.size(), summed.size(), edge.size());
  // Edges are told apart by what is kept by their ids alone.
  bool by_id = p.edge.data != nullptr || p.bias || p.dropout.kind != kKeepAll;

  static std::int64_t largest(std::int64_t a, std::int64_t b, std::int64_t c) {
    const std::int64_t ab = a > b ? a : b;
    return ab > c ? ab : c;
  }

  // ---- scratch

  static constexpr int kRows = 8, kNumbers = 11;
  std::int64_t space_size() const { return kRows * row_size + kNumbers * numbers; }
  Space<T> space(A* from) const {
    const auto take = [&](std::int64_t n) { return from += n, from - n; };
    const std::int64_t r = row_size, n = numbers;
    Space<T> s{take(r),
               take(r),
               take(r),
               take(r),
               take(r),
               take(r),
               take(n),
               take(n),
               take(n),
               take(n),
               take(n),
               take(n),
               take(n),
               take(n),
               take(n),
               take(n),
               take(n),
               reinterpret_cast<T*>(take(r)),
               reinterpret_cast<T*>(take(r))};
    fill(s.bias, n, A(0));
    fill(s.factor, n, A(1));
    fill(s.gamma, n, A(0));
    return s;
  }

  // ---- an edge

  std::int64_t id(std::int64_t e) const { return p.edge_ids.data == nullptr ? e : p.edge_ids[e]; }

  const T* edge_row(std::int64_t id) const {
    return p.edge.data == nullptr ? nullptr : p.edge.at<T>(0, id);
  }

  // By destination, where an edge leads back to its source.
  EdgeRows<T> rows_by_destination(std::int64_t e) const {
    if (e + kAhead < p.n_edges) {
      const std::int64_t ahead = p.indices[e + kAhead];
      prefetch_start(p.value.at<T>(0, ahead), p.value_dim);
      if (p.src.data != p.value.data) prefetch_start(p.src.at<T>(0, ahead), p.dim);
    }
    const std::int64_t j = p.indices[e], i = by_id ? id(e) : e;
    return {i, p.src.at<T>(0, j), p.value.at<T>(0, j), edge_row(i), nullptr};
  }

  A bias(std::int64_t edge, std::int64_t h) const {
    if (p.bias.dtype == p.dtype) return widen(p.bias.rows.template at<T>(0, edge)[h]);
    return A(p.bias.rows.template at<float>(0, edge)[h]);
  }

  // Reads an edge's bias; returns how many heads one of -inf masks: nothing of the edge may reach
  // them, not even a NaN.
  std::int64_t read_bias(std::int64_t edge, const Space<T>& s) const {
    std::int64_t masked = 0;
    for (std::int64_t h = 0; p.bias && h < heads; ++h) {
      s.bias[h] = bias(edge, h);
      masked += s.bias[h] == minus_infinity<A>();
    }
    return masked;
  }

  void read_factors(std::int64_t edge, const Space<T>& s) const {
    if (p.dropout.kind == kRandom) {
      const unsigned long long key = edge_key(p.dropout.seed, edge);
      for (int h = 0; h < heads; ++h) s.factor[h] = p.dropout.random_factor<A>(key, h);
    } else if (p.dropout.kind != kKeepAll) {
      for (int h = 0; h < heads; ++h) s.factor[h] = p.dropout.factor<A>(edge, h);
    }
  }

  bool is_masked(const Space<T>& s, std::int64_t h) const {
    return s.bias[h] == minus_infinity<A>();
  }

  // A copy of a row with zeros in masked heads.
  const T*
  blanked(const T* row, std::int64_t width, std::int64_t stride, const Space<T>& s, T* copy) const {
    for (std::int64_t h = 0; h < heads; ++h)
      for (std::int64_t c = 0; c < width; ++c)
        copy[h * width + c] = is_masked(s, h) ? narrow<T>(A(0)) : row[h * stride + c];
    return copy;
  }

  // The logit of a pack of heads with its bias, -inf where that is.
  Pack<A> biased(Pack<A> logit, std::int64_t h, const Space<T>& s) const {
    if (!p.bias) return logit;
    const Pack<A> bias = load(s.bias + h);
    return bias == Pack<A>{} + minus_infinity<A>() ? bias : logit + bias;
  }

  // ---- results

  template <typename Shape>
  void write(const Attention::Array& to, std::int64_t row, const Shape& shape, const A* from,
             std::int64_t column = 0) const {
    if (to.dtype == p.dtype) {
      write_heads(shape, to.rows.template at<T>(0, row) + column, from);
    } else {
      write_heads(shape, to.rows.template at<A>(0, row) + column, from);
    }
  }

  void write_numbers(const Attention::Array& to, std::int64_t row, const A* from) const {
    write(to, row, HeadShape<A, 0>{1, heads}, from);
  }

  // Chunks of rows that weight gradients are added up in: few, so that their sums are small.
  static std::int64_t chunk_work(const Ids& offsets, std::int64_t n_rows) {
    constexpr std::int64_t kMostChunks = 256;
    const std::int64_t work = (offsets[n_rows] + n_rows) / kMostChunks + 1;
    return work > kChunkWork ? work : kChunkWork;
  }
};

// The spaces of all threads.
template <typename T, int kPacks> class Spaces {
 public:
  explicit Spaces(const Edges<T, kPacks>& edges)
      : memory_(num_threads() * edges.space_size()), spaces_(num_threads()) {
    for (int i = 0; i < num_threads(); ++i)
      spaces_[i] = edges.space(memory_.get() + i * edges.space_size());
  }
  const Space<T>& of(const Run& run) const { return spaces_[run.thread]; }

 private:
  Scratch<accum_t<T>> memory_;
  Scratch<Space<T>> spaces_;
};

}  // namespace
}  // namespace edgegrad::EG_ISA
