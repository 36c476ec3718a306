// Host kernels of gather_reduce; kernels/gather_reduce.cu has the formulas.
//
// A row's edges are taken in blocks. Register tiles of up to kVectors packs walk over a block; each
// block is summed from zero and added to the row, so that long sums stay accurate. The last pack of
// a row overlaps the one before it, and rows narrower than a pack go column by column.
#include "gather_reduce.h"

#include <cmath>

#include "dispatch.h"
#include "edge_reads.h"
#include "row_loop.h"
#include "simd.h"

namespace edgegrad::EG_ISA {
namespace {

using Problem = GatherReduce::Problem;
using Reducer = GatherReduce::Reducer;

constexpr int kBlockEdges = 64;
constexpr int kVectors = 8;
constexpr std::int64_t kPrefetchEdges = 16;

template <int N> struct Count {
  static constexpr int value = N;
};

// tile(pack, count, c, skip) for the columns [begin, end): `count` packs from column c on, at most
// kMost of them, but for the first `skip` lanes, or a single accumulator.
template <typename A, int kMost = kVectors, typename Tile>
EG_INLINE void for_columns(std::int64_t begin, std::int64_t end, const Tile& tile) {
  constexpr int W = kLanes<A>;
  constexpr Pack<A> pack = {};
  std::int64_t c = begin;
  for (; c + kMost * W <= end; c += kMost * W) tile(pack, Count<kMost>{}, c, 0);
  if (kMost > 4 && c + 4 * W <= end) tile(pack, Count<4>{}, c, 0), c += 4 * W;
  if (c + 2 * W <= end) tile(pack, Count<2>{}, c, 0), c += 2 * W;
  if (c + W <= end) tile(pack, Count<1>{}, c, 0), c += W;
  if (c == end) return;
  if (end >= W) return tile(pack, Count<1>{}, end - W, static_cast<int>(c - (end - W)));
  for (; c < end; ++c) tile(A(0), Count<1>{}, c, 0);
}

template <typename T, typename I> struct Kernels {
  using A = accum_t<T>;
  static constexpr int W = kLanes<A>;

  // Edges of one row, without those that read a row whose divisor is 0.
  struct Block {
    int n;
    const T* x[kBlockEdges];      // what each reads
    const T* ahead[kBlockEdges];  // what is read some edges later, perhaps by another row
    A scale[kBlockEdges];         // one over the divisor of what it reads
    std::int64_t row[kBlockEdges], position[kBlockEdges];
  };

  // ---- blocks of edges

  static void
  fill(const Problem& p, std::int64_t batch, std::int64_t first, std::int64_t last, Block& block) {
    const Edges& g = p.edges;
    int n = 0;
    for (std::int64_t e = first; e < last; ++e) {
      const std::int64_t row = row_read<I>(g, e);
      const A divisor = divisor_of<T, I>(p.gathered, p.dtype, row);
      if (divisor == A(0)) continue;
      const std::int64_t later = e + kPrefetchEdges < g.count ? e + kPrefetchEdges : g.count - 1;
      block.x[n] = p.input.at<T>(batch, row);
      block.ahead[n] = p.input.at<T>(batch, row_read<I>(g, later));
      block.scale[n] = A(1) / divisor;
      block.row[n] = row;
      block.position[n] = position_of<I>(g, e);
      ++n;
    }
    block.n = n;
  }

  // What a head's columns of each edge are multiplied by.
  static void coefficients(const Problem& p, const Block& block, std::int64_t head, A* k) {
    const A sign = static_cast<A>(p.sign);
    for (int i = 0; i < block.n; ++i) {
      k[i] = sign * block.scale[i];
      if (p.weight.data != nullptr)
        k[i] *= read_as<T>(p.weight.data, p.weight.dtype, p.dtype,
                           block.position[i] * p.weight.row + head);
    }
  }

  // body(block, k, begin, end, first) for every block of a row's edges and the columns of every
  // head; at least one block, perhaps without edges.
  template <typename Body>
  static EG_INLINE void for_blocks(const Problem& p, std::int64_t batch, std::int64_t begin,
                                   std::int64_t end, const Body& body) {
    Block block;
    A k[kBlockEdges];
    const std::int64_t width = p.dim / p.heads;
    for (std::int64_t first = begin;;) {
      const std::int64_t last = end - first < kBlockEdges ? end : first + kBlockEdges;
      fill(p, batch, first, last, block);
      for (std::int64_t head = 0; head < p.heads; ++head) {
        coefficients(p, block, head, k);
        body(block, k, head * width, (head + 1) * width, first == begin);
      }
      first = last;
      if (first >= end) return;
    }
  }

  // The lines of one tile, counted at compile time, and the last line of a row not much wider.
  template <int kBytes> static EG_INLINE void prefetch(const T* row, std::int64_t dim) {
    const char* at = reinterpret_cast<const char*>(row);
    for (int byte = 0; byte < kBytes; byte += 64) __builtin_prefetch(at + byte);
    const std::int64_t bytes = dim * static_cast<std::int64_t>(sizeof(T));
    __builtin_prefetch(at + (bytes < kBytes + 64 ? bytes : kBytes + 64) - 1);
  }

  // out = acc, or out += acc, but for the first `skip` lanes
  template <typename V, int NV>
  static EG_INLINE void put(A* out, const V (&acc)[NV], int skip, bool set) {
    for (int v = 0; v < NV; ++v) {
      V total = acc[v];
      if (!set) total += load_as<V>(out + v * W);
      if constexpr (sizeof(V) > sizeof(A)) {
        for (int l = skip; skip > 0 && l < W; ++l) out[l] = total[l];
        if (skip > 0) return;
      }
      std::memcpy(out + v * W, &total, sizeof total);
    }
  }

  // Sets `out` to what the row begins with if its first edge is `begin`; says whether it did.
  static bool
  started(const Problem& p, std::int64_t batch, std::int64_t row, std::int64_t begin, A* out) {
    const I* offsets = static_cast<const I*>(p.edges.offsets);
    if (row >= p.start.count || (offsets != nullptr && begin != std::int64_t(offsets[row])))
      return false;
    const std::int64_t from =
        p.start.ids == nullptr ? row : std::int64_t(static_cast<const I*>(p.start.ids)[row]);
    for (std::int64_t c = 0; c < p.dim; ++c)
      out[c] = p.start.is_accumulator ? p.start.rows.template at<A>(batch, from)[c]
                                      : widen(p.start.rows.template at<T>(batch, from)[c]);
    return true;
  }

  // ---- sums of k x

  template <typename V, int NV, bool kPlain, bool kAhead>
  static EG_INLINE void
  add_edges(V (&acc)[NV], const Block& block, const A* k, std::int64_t dim, std::int64_t c) {
    for (int e = 0; e < block.n; ++e) {
      if constexpr (kAhead) prefetch<NV * W* static_cast<int>(sizeof(T))>(block.ahead[e], dim);
      for (int v = 0; v < NV; ++v) {
        const V x = load_as<V>(block.x[e] + c + v * W);
        acc[v] += kPlain ? x : k[e] * x;
      }
    }
  }

  template <bool kPlain>
  static void sum(const Problem& p, std::int64_t batch, std::int64_t row, std::int64_t begin,
                  std::int64_t end, A* out) {
    const bool own = started(p, batch, row, begin, out);
    const auto body = [&](const Block& block, const A* k, std::int64_t c0, std::int64_t c1,
                          bool first) {
      for_columns<A>(c0, c1, [&](auto pack, auto count, std::int64_t c, int skip) {
        constexpr int NV = decltype(count)::value;
        decltype(pack) acc[NV] = {};
        if (c == 0) {
          add_edges<decltype(pack), NV, kPlain, true>(acc, block, k, p.dim, c);
        } else {
          add_edges<decltype(pack), NV, kPlain, false>(acc, block, k, p.dim, c);
        }
        put(out + c, acc, skip, first && !own);
      });
    };
    for_blocks(p, batch, begin, end, body);
  }

  // ---- sums of k x over the columns that an edge won

  static void winner(const Problem& p, std::int64_t batch, std::int64_t row, std::int64_t begin,
                     std::int64_t end, A* out) {
    const bool own = started(p, batch, row, begin, out);
    const auto body = [&](const Block& block, const A* k, std::int64_t c0, std::int64_t c1,
                          bool first) {
      for_columns<A>(c0, c1, [&](auto pack, auto count, std::int64_t c, int skip) {
        using V = decltype(pack);
        constexpr int NV = decltype(count)::value;
        V acc[NV] = {};
        for (int e = 0; e < block.n; ++e) {
          const I* won = p.extrema.at<I>(batch, block.row[e]) + c;
          for (int v = 0; v < NV; ++v) {
            const auto mine = lanes_equal<V, A>(won + v * W, static_cast<I>(block.position[e]));
            const V x = k[e] * load_as<V>(block.x[e] + c + v * W);
            acc[v] += mine ? x : V{};
          }
        }
        put(out + c, acc, skip, first && !own);
      });
    };
    for_blocks(p, batch, begin, end, body);
  }

  // ---- the largest of k x, and where it is: `dim` accumulators, then as many positions

  // An even number of columns, so that 64-bit positions behind floats are aligned.
  static std::int64_t padded(const Problem& p) { return (p.dim + 1) / 2 * 2; }
  static I* positions(const Problem& p, A* values) {
    return reinterpret_cast<I*>(values + padded(p));
  }

  // Whether a later value takes the place of an earlier one: it is larger, or the first NaN.
  template <typename V> static EG_INLINE auto better(V later, V earlier) {
    return !(later <= earlier) & (earlier == earlier);
  }

  template <typename V, int NV>
  static EG_INLINE void largest(V (&best)[NV], Lanes<V> (&edge)[NV], const Block& block, const A* k,
                                std::int64_t dim, std::int64_t c) {
    for (int v = 0; v < NV; ++v) best[v] = k[0] * load_as<V>(block.x[0] + c + v * W);
    for (int e = 0; e < block.n; ++e) {
      if (c == 0) prefetch<NV * W* static_cast<int>(sizeof(T))>(block.ahead[e], dim);
      for (int v = 0; v < NV; ++v) {
        const V x = k[e] * load_as<V>(block.x[e] + c + v * W);
        const auto take = better(x, best[v]);
        best[v] = take ? x : best[v];
        edge[v] = take ? Lanes<V>{} + e : edge[v];
      }
    }
  }

  static void extremum(const Problem& p, std::int64_t batch, std::int64_t, std::int64_t begin,
                       std::int64_t end, A* out) {
    if (begin == end) return;
    I* at = positions(p, out);
    const auto body = [&](const Block& block, const A* k, std::int64_t c0, std::int64_t c1,
                          bool first) {
      // Each pack has its positions beside it, so fewer fit into registers.
      for_columns<A, 4>(c0, c1, [&](auto pack, auto count, std::int64_t c, int skip) {
        using V = decltype(pack);
        constexpr int NV = decltype(count)::value;
        constexpr int kColumns = NV * static_cast<int>(sizeof(V) / sizeof(A));
        V best[NV];
        Lanes<V> edge[NV] = {};
        largest(best, edge, block, k, p.dim, c);
        A value[kColumns];
        Lanes<A> of[kColumns];
        std::memcpy(value, best, sizeof value);
        std::memcpy(of, edge, sizeof of);
        for (int i = skip; i < kColumns; ++i) {
          if (!first && !better(value[i], out[c + i])) continue;
          out[c + i] = value[i];
          at[c + i] = static_cast<I>(block.position[of[i]]);
        }
      });
    };
    for_blocks(p, batch, begin, end, body);
  }

  static void merge_extrema(const Problem& p, A* total, const A* part) {
    const I* from = positions(p, const_cast<A*>(part));
    I* to = positions(p, total);
    for (std::int64_t c = 0; c < p.dim; ++c)
      if (better(part[c], total[c])) total[c] = part[c], to[c] = from[c];
  }

  // ---- variance: sums of (x - centre)^2, and their gradient

  static void squares(const Problem& p, std::int64_t batch, std::int64_t row, std::int64_t begin,
                      std::int64_t end, A* out) {
    const A* centre = p.centre.at<A>(batch, row);
    for (std::int64_t c = 0; c < p.dim; ++c) out[c] = A(0);
    for_blocks(p, batch, begin, end,
               [&](const Block& block, const A*, std::int64_t, std::int64_t, bool) {
                 for (int e = 0; e < block.n; ++e)
                   for (std::int64_t c = 0; c < p.dim; ++c) {
                     const A d = widen(block.x[e][c]) - centre[c];
                     out[c] += d * d;
                   }
               });
  }

  static void spread(const Problem& p, std::int64_t batch, std::int64_t row, std::int64_t begin,
                     std::int64_t end, A* out) {
    if (!started(p, batch, row, begin, out))
      for (std::int64_t c = 0; c < p.dim; ++c) out[c] = A(0);
    const T* own = p.own.at<T>(batch, row);
    for_blocks(p, batch, begin, end,
               [&](const Block& block, const A* k, std::int64_t, std::int64_t, bool) {
                 for (int e = 0; e < block.n; ++e) {
                   const std::int64_t from = block.row[e];
                   const A* centre = p.centre.at<A>(batch, from);
                   const T* deviation =
                       p.deviation.data == nullptr ? nullptr : p.deviation.at<T>(batch, from);
                   for (std::int64_t c = 0; c < p.dim; ++c)
                     out[c] += k[e] * spread_gradient(block.x[e], own, centre, deviation, c);
                 }
               });
  }

  // ---- rows

  static void finish(const Problem& p, std::int64_t batch, std::int64_t row, const A* sums) {
    const A divisor = divisor_of<T, I>(p.divide, p.dtype, row);
    const auto value = [&](std::int64_t c) {
      const A x = divisor == A(0) ? A(0) : sums[c] / divisor;
      return p.root ? std::sqrt(x) : x;
    };
    if (p.output_is_accumulator) {
      A* to = p.output.at<A>(batch, row);
      if (to == sums && divisor == A(1) && !p.root) return;
      for (std::int64_t c = 0; c < p.dim; ++c) to[c] = value(c);
    } else {
      T* to = p.output.at<T>(batch, row);
      if (static_cast<const void*>(to) == sums && divisor == A(1) && !p.root) return;
      for (std::int64_t c = 0; c < p.dim; ++c) to[c] = narrow<T>(value(c));
    }
  }

  static void finish_extremum(const Problem& p, std::int64_t batch, std::int64_t row, A* values) {
    const I* offsets = static_cast<const I*>(p.edges.offsets);
    const bool empty = offsets[row] == offsets[row + 1];
    const I* at = positions(p, values);
    T* to = p.output.at<T>(batch, row);
    I* extrema = p.extrema.data == nullptr ? nullptr : p.extrema.at<I>(batch, row);
    const A sign = static_cast<A>(p.sign);
    for (std::int64_t c = 0; c < p.dim; ++c) to[c] = narrow<T>(empty ? A(0) : sign * values[c]);
    for (std::int64_t c = 0; extrema != nullptr && c < p.dim; ++c)
      extrema[c] = empty ? I(-1) : at[c];
  }

  template <typename Sum> static void
  reduce_sums(const Problem& p, const Pieces& pieces, const Sum& compute) {
    const I* offsets = static_cast<const I*>(p.edges.offsets);
    for (std::int64_t batch = 0; batch < p.batch; ++batch) {
      const auto direct = [&](std::int64_t r) {
        return p.output_is_accumulator ? p.output.at<A>(batch, r)
                                       : in_place<T>(p.output.at<T>(batch, r));
      };
      const auto sum_run = [&](std::int64_t r, std::int64_t begin, std::int64_t end, A* sums) {
        compute(p, batch, r, begin, end, sums);
      };
      const auto end_row = [&](std::int64_t r, const A* sums) { finish(p, batch, r, sums); };
      for_rows<A>(offsets, p.edges.rows, pieces, p.dim, sum_run, direct, end_row);
    }
  }

  static void reduce_extrema(const Problem& p, const Pieces& pieces) {
    const std::int64_t width = padded(p) * static_cast<std::int64_t>(sizeof(A) + sizeof(I)) /
                               static_cast<std::int64_t>(sizeof(A));
    for (std::int64_t batch = 0; batch < p.batch; ++batch)
      for_rows<A>(
          static_cast<const I*>(p.edges.offsets), p.edges.rows, pieces, width,
          [&](std::int64_t r, std::int64_t begin, std::int64_t end, A* values) {
            extremum(p, batch, r, begin, end, values);
          },
          [](std::int64_t) { return static_cast<A*>(nullptr); },
          [&](std::int64_t r, A* values) { finish_extremum(p, batch, r, values); },
          [&](A* total, const A* part) { merge_extrema(p, total, part); });
  }

  // Rows without edges: what they begin with.
  static void copy_starts(const Problem& p) {
    for (std::int64_t batch = 0; batch < p.batch; ++batch)
      for_each_row(p.edges.rows, [&](std::int64_t r) {
        copy_row(p.output.at<T>(batch, r), p.start.rows.at<T>(batch, r), p.dim);
      });
  }

  static void reduce(const Problem& p, const Pieces& pieces) {
    if (p.edges.offsets == nullptr) return copy_starts(p);
    const bool plain = p.weight.data == nullptr && p.gathered.sums == nullptr &&
                       p.gathered.offsets == nullptr && p.sign == 1;
    switch (p.reducer) {
      case Reducer::sum:
        return plain ? reduce_sums(p, pieces, sum<true>) : reduce_sums(p, pieces, sum<false>);
      case Reducer::extremum:
        return reduce_extrema(p, pieces);
      case Reducer::winner:
        return reduce_sums(p, pieces, winner);
      case Reducer::squares:
        return reduce_sums(p, pieces, squares);
      case Reducer::spread:
        return reduce_sums(p, pieces, spread);
    }
  }
};

constexpr GatherReduce kFamily = {
    [](const Problem& p, const Pieces& pieces) {
      with_types<Kernels>(p.dtype, p.wide, [&](auto kernels) { kernels.reduce(p, pieces); });
    },
};

}  // namespace

const GatherReduce& gather_reduce() { return kFamily; }

}  // namespace edgegrad::EG_ISA
