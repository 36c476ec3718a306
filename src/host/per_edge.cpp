// Host kernels of per_edge; kernels/per_edge.cu has the formulas.
#include "per_edge.h"

#include "dispatch.h"
#include "edge_reads.h"
#include "row_loop.h"
#include "simd.h"

namespace edgegrad::EG_ISA {
namespace {

using Expansion = PerEdge::Expansion;
using FactorGradient = PerEdge::FactorGradient;

constexpr std::int64_t kChunkEdges = 512;
constexpr std::int64_t kPrefetchEdges = 8;

template <typename T, typename I> struct Kernels {
  using A = accum_t<T>;
  using P = Pack<A>;
  static constexpr int W = kLanes<A>;

  // body(edge, row, thread) for every edge, in runs of equal length.
  template <typename Body> static void for_edges(const Edges& g, int threads, const Body& body) {
    const I* offsets = static_cast<const I*>(g.offsets);
    parallel_for(
        (g.count + kChunkEdges - 1) / kChunkEdges, threads, [&](std::int64_t chunk, int thread) {
          const std::int64_t begin = chunk * kChunkEdges;
          const std::int64_t end = g.count - begin < kChunkEdges ? g.count : begin + kChunkEdges;
          std::int64_t row = row_of_edge(offsets, g.rows, begin);
          for (std::int64_t e = begin; e < end; ++e) {
            while (std::int64_t(offsets[row + 1]) <= e) ++row;
            body(e, row, thread);
          }
        });
  }

  // ---- expand

  static void
  add_row(A* sums, const Rows& rows, bool is_accumulator, std::int64_t r, std::int64_t dim) {
    if (rows.data == nullptr) return;
    if (is_accumulator) {
      const A* from = rows.at<A>(0, r);
      for (std::int64_t c = 0; c < dim; ++c) sums[c] += from[c];
    } else {
      const T* from = rows.at<T>(0, r);
      for (std::int64_t c = 0; c < dim; ++c) sums[c] += widen(from[c]);
    }
  }

  static void subtract_list(const Expansion& p, std::int64_t id, A* sums) {
    const I* list = static_cast<const I*>(p.list);
    const I* offsets = static_cast<const I*>(p.list_offsets);
    const std::int64_t begin = offsets == nullptr ? id : std::int64_t(offsets[id]);
    const std::int64_t end = offsets == nullptr ? id + 1 : std::int64_t(offsets[id + 1]);
    for (std::int64_t i = begin; i < end; ++i) {
      if (list[i] < 0) continue;
      const T* from = p.subtrahend.at<T>(0, list[i]);
      for (std::int64_t c = 0; c < p.dim; ++c) sums[c] -= widen(from[c]);
    }
  }

  // What comes back from the edge's row: all of it, or what the edge won, or by its part in a
  // variance.
  static void
  scaled_row(const Expansion& p, std::int64_t e, std::int64_t row, std::int64_t id, T* to) {
    const A divisor = divisor_of<T, I>(p.divide, p.dtype, row);
    const T* from = p.row.at<T>(0, row);
    const I position = static_cast<I>(position_of<I>(p.edges, e));
    const I* won = p.extrema.data == nullptr ? nullptr : p.extrema.at<I>(0, row);
    const A* centre = p.centre.data == nullptr ? nullptr : p.centre.at<A>(0, row);
    const T* deviation = p.deviation.data == nullptr ? nullptr : p.deviation.at<T>(0, row);
    const T* value = centre == nullptr ? nullptr : p.edge.at<T>(0, id);
    if (won != nullptr) {
      for (std::int64_t c = 0; c < p.dim; ++c) to[c] = won[c] == position ? from[c] : T{};
    } else if (centre != nullptr) {
      for (std::int64_t c = 0; c < p.dim; ++c)
        to[c] = narrow<T>(spread_gradient(from, value, centre, deviation, c) / divisor);
    } else {
      for (std::int64_t c = 0; c < p.dim; ++c) to[c] = narrow<T>(widen(from[c]) / divisor);
    }
  }

  static void expand(const Expansion& p) {
    const int threads = num_threads();
    const Scratch<A> scratch(threads * p.dim);
    const bool sums_up = p.row_is_accumulator || p.source.data != nullptr ||
                         p.subtrahend.data != nullptr || p.row.data == nullptr ||
                         (p.edge.data != nullptr && p.centre.data == nullptr);
    for_edges(p.edges, threads, [&](std::int64_t e, std::int64_t row, int thread) {
      const std::int64_t id = edge_id_of<I>(p.edges, position_of<I>(p.edges, e));
      T* to = p.output.at<T>(0, id);
      if (!sums_up) return scaled_row(p, e, row, id, to);
      A* sums = scratch.get() + thread * p.dim;
      for (std::int64_t c = 0; c < p.dim; ++c) sums[c] = A(0);
      add_row(sums, p.edge, false, id, p.dim);
      if (p.source.data != nullptr)
        add_row(sums, p.source, p.source_is_accumulator, row_read<I>(p.edges, e), p.dim);
      add_row(sums, p.row, p.row_is_accumulator, row, p.dim);
      if (p.subtrahend.data != nullptr) subtract_list(p, id, sums);
      write_row(to, sums, p.dim, A(1));
    });
  }

  // ---- grad_factor

  // <g, x> (minus <g, mean>), or over the columns the edge won
  static A dot(const T* g, const T* x, const T* mean, std::int64_t dim) {
    P acc[4] = {};
    std::int64_t c = 0;
    const auto term = [&](std::int64_t at) {
      P v = load(x + at);
      if (mean != nullptr) v -= load(mean + at);
      return load(g + at) * v;
    };
    for (; c + 4 * W <= dim; c += 4 * W)
      for (int v = 0; v < 4; ++v) acc[v] += term(c + v * W);
    for (; c + W <= dim; c += W) acc[0] += term(c);
    A total = sum_lanes<A>((acc[0] + acc[1]) + (acc[2] + acc[3]));
    for (; c < dim; ++c)
      total += widen(g[c]) * (widen(x[c]) - (mean == nullptr ? A(0) : widen(mean[c])));
    return total;
  }

  static A dot_won(const T* g, const T* x, const I* won, I position, std::int64_t dim) {
    A total = 0;
    for (std::int64_t c = 0; c < dim; ++c)
      if (won[c] == position) total += widen(g[c]) * widen(x[c]);
    return total;
  }

  static void grad_factor(const FactorGradient& p) {
    const std::int64_t width = p.dim / p.heads;
    for_edges(p.edges, num_threads(), [&](std::int64_t e, std::int64_t row, int) {
      const std::int64_t read = row_read<I>(p.edges, e), position = position_of<I>(p.edges, e);
      if (p.edges.ids != nullptr && e + kPrefetchEdges < p.edges.count)
        prefetch_row(p.input.at<T>(0, row_read<I>(p.edges, e + kPrefetchEdges)), p.dim);
      const A divisor = divisor_of<T, I>(p.divide, p.dtype, row);
      for (std::int64_t head = 0; head < p.heads; ++head) {
        A total = 0;
        for (std::int64_t batch = 0; divisor != A(0) && batch < p.batch; ++batch) {
          const std::int64_t c = head * width;
          const T* g = p.grad.at<T>(batch, row) + c;
          const T* x = p.input.at<T>(batch, read) + c;
          const T* mean = p.mean.data == nullptr ? nullptr : p.mean.at<T>(batch, row) + c;
          total += p.extrema.data == nullptr ? dot(g, x, mean, width)
                                             : dot_won(g, x, p.extrema.at<I>(batch, row) + c,
                                                       static_cast<I>(position), width);
        }
        const A value = divisor == A(0) ? A(0) : total / divisor;
        const std::int64_t at = position * p.result.row + head;
        if (p.result.dtype == p.dtype) {
          static_cast<T*>(p.result.data)[at] = narrow<T>(value);
        } else {
          static_cast<float*>(p.result.data)[at] = static_cast<float>(value);
        }
      }
    });
  }
};

constexpr PerEdge kFamily = {
    [](const Expansion& p) {
      with_types<Kernels>(p.dtype, p.wide, [&](auto kernels) { kernels.expand(p); });
    },
    [](const FactorGradient& p) {
      with_types<Kernels>(p.dtype, p.wide, [&](auto kernels) { kernels.grad_factor(p); });
    },
};

}  // namespace

const PerEdge& per_edge() { return kFamily; }

}  // namespace edgegrad::EG_ISA
