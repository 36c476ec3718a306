// Host kernels of sddmm; the maths is explained in kernels/sddmm.cu.
#include "sddmm.h"

#include <type_traits>

#include "common/edge_op.h"
#include "dispatch.h"
#include "row_loop.h"
#include "simd.h"

namespace edgegrad::EG_ISA {
namespace {

constexpr std::int64_t kChunkEdges = 1024;
constexpr std::int64_t kPrefetchEdges = 16;
constexpr int kVectors = 4;

template <typename T, typename I> struct Kernels {
  using A = accum_t<T>;
  using P = Pack<A>;
  static constexpr int kWidth = kLanes<A>;

  // ---- forward: equal runs of edges, whatever rows they belong to

  template <int OP> static void forward(const Sddmm::Problem& p) {
    const I* offsets = static_cast<const I*>(p.offsets);
    const I* indices = static_cast<const I*>(p.indices);
    const std::int64_t width = p.n_heads * p.dim;
    const std::int64_t chunks = (p.n_edges + kChunkEdges - 1) / kChunkEdges;
    parallel_for(chunks, num_threads(), [&](std::int64_t chunk, int) {
      const std::int64_t begin = chunk * kChunkEdges;
      const std::int64_t end = begin + kChunkEdges < p.n_edges ? begin + kChunkEdges : p.n_edges;
      std::int64_t dst = row_of_edge(offsets, p.n_dst, begin);
      for (std::int64_t e = begin; e < end; ++e) {
        while (std::int64_t(offsets[dst + 1]) <= e) ++dst;
        if (reads_rhs(OP) && e + kPrefetchEdges < end)
          prefetch_row(p.rhs.at<T>(0, indices[e + kPrefetchEdges]), width);
        const T* lhs = reads_lhs(OP) ? p.lhs.at<T>(0, dst) : nullptr;
        const T* rhs = reads_rhs(OP) ? p.rhs.at<T>(0, indices[e]) : nullptr;
        T* to = p.output.at<T>(0, e);
        if constexpr (OP == kDot) {
          for (std::int64_t h = 0; h < p.n_heads; ++h)
            to[h] = narrow<T>(dot(lhs + h * p.dim, rhs + h * p.dim, p.dim));
        } else {
          map<OP>(to, lhs, rhs, width);
        }
      }
    });
  }

  // Four strands, so that an addition need not wait for the one before it.
  static EG_INLINE A dot(const T* x, const T* y, std::int64_t dim) {
    P strand[kVectors] = {};
    std::int64_t c = 0;
    for (; c + kVectors * kWidth <= dim; c += kVectors * kWidth)
      for (int v = 0; v < kVectors; ++v)
        strand[v] += load(x + c + v * kWidth) * load(y + c + v * kWidth);
    for (; c + kWidth <= dim; c += kWidth) strand[0] += load(x + c) * load(y + c);
    const int part = static_cast<int>(dim - c);
    if (part > 0) strand[1] += load_part(x + c, part) * load_part(y + c, part);
    return sum_lanes<A>((strand[0] + strand[1]) + (strand[2] + strand[3]));
  }

  template <int OP>
  static EG_INLINE void map(T* to, const T* lhs, const T* rhs, std::int64_t width) {
    std::int64_t c = 0;
    for (; c + kWidth <= width; c += kWidth)
      store_as(to + c, edge_op(OP, reads_lhs(OP) ? load(lhs + c) : P{},
                               reads_rhs(OP) ? load(rhs + c) : P{}));
    for (; c < width; ++c)
      to[c] = narrow<T>(
          edge_op(OP, reads_lhs(OP) ? widen(lhs[c]) : A(0), reads_rhs(OP) ? widen(rhs[c]) : A(0)));
  }

  // ---- gradients: rows of the side they belong to

  template <int TERM> static void gradient(const Sddmm::Gradient& p, const Pieces& pieces) {
    for_rows<A>(
        static_cast<const I*>(p.offsets), p.n_rows, pieces, p.width,
        [&](std::int64_t r, std::int64_t begin, std::int64_t end, A* out) {
          if (TERM == kZero) end = begin;
          gather<TERM>(p, r, begin, end, out);
        },
        [&](std::int64_t r) { return in_place<T>(p.result.at<T>(0, r)); },
        [&](std::int64_t r, const A* sums) {
          T* to = p.result.at<T>(0, r);
          if (static_cast<const void*>(to) != sums) write_row(to, sums, p.width, A(1));
        });
  }

  template <int TERM>
  static void
  gather(const Sddmm::Gradient& p, std::int64_t r, std::int64_t begin, std::int64_t end, A* out) {
    // Tiles of columns stay within the channels that share an edge's gradient.
    const std::int64_t run = p.per_head > 1 ? p.per_head : p.width;
    for (std::int64_t from = 0; from < p.width; from += run) {
      std::int64_t c = from;
      for (; c + kVectors * kWidth <= from + run; c += kVectors * kWidth)
        tile<TERM, kVectors>(p, r, begin, end, c, kWidth, out);
      for (; c + kWidth <= from + run; c += kWidth) tile<TERM, 1>(p, r, begin, end, c, kWidth, out);
      if (c < from + run) tile<TERM, 1>(p, r, begin, end, c, static_cast<int>(from + run - c), out);
    }
  }

  static EG_INLINE P load_up_to(const T* p, int n) {
    return n == kWidth ? load(p) : load_part(p, n);
  }

  // Columns c of a run of edges, in registers; a tile of one pack may be a part of `n` lanes.
  template <int TERM, int NV>
  static EG_INLINE void tile(const Sddmm::Gradient& p, std::int64_t r, std::int64_t begin,
                             std::int64_t end, std::int64_t c, int n, A* out) {
    const I* other_end = static_cast<const I*>(p.other_end);
    const I* position = static_cast<const I*>(p.position);
    P acc[NV] = {}, own[NV] = {}, other[NV] = {}, grad[NV];
    if (reads_own(TERM))
      for (int v = 0; v < NV; ++v)
        own[v] = load_up_to(p.own.at<T>(0, r) + c + v * kWidth, NV > 1 ? kWidth : n);
    for (std::int64_t at = begin; at < end; ++at) {
      const T* from = p.grad_output.at<T>(0, position == nullptr ? at : std::int64_t(position[at]));
      for (int v = 0; v < NV; ++v)
        grad[v] = p.per_head > 1 ? P{} + widen(from[c / p.per_head])
                                 : load_up_to(from + c + v * kWidth, NV > 1 ? kWidth : n);
      if (reads_other(TERM))
        for (int v = 0; v < NV; ++v)
          other[v] =
              load_up_to(p.other.at<T>(0, other_end[at]) + c + v * kWidth, NV > 1 ? kWidth : n);
      for (int v = 0; v < NV; ++v) acc[v] += edge_term(TERM, grad[v], other[v], own[v]);
    }
    for (int v = 0; v < NV; ++v) {
      if (NV > 1 || n == kWidth) {
        store(out + c + v * kWidth, acc[v]);
      } else {
        store_part(out + c, acc[v], n);
      }
    }
  }
};

// Calls `call` with the number as a type, since loops over edges are compiled for each.
template <int COUNT, typename Call> EG_INLINE void with_number(int n, const Call& call) {
  if constexpr (COUNT > 0) {
    if (n == COUNT - 1) return call(std::integral_constant<int, COUNT - 1>{});
    with_number<COUNT - 1>(n, call);
  }
}

constexpr Sddmm kFamily = {
    [](const Sddmm::Problem& p) {
      with_types<Kernels>(p.dtype, p.wide, [&](auto kernels) {
        with_number<kCopyRhs + 1>(p.op, [&](auto op) { kernels.template forward<op>(p); });
      });
    },
    [](const Sddmm::Gradient& p, const Pieces& pieces) {
      with_types<Kernels>(p.dtype, p.wide, [&](auto kernels) {
        with_number<kQuotient + 1>(p.term,
                                   [&](auto term) { kernels.template gradient<term>(p, pieces); });
      });
    },
};

}  // namespace

const Sddmm& sddmm() { return kFamily; }

}  // namespace edgegrad::EG_ISA
