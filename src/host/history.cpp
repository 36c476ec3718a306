// Host kernels of history; the maths is explained in kernels/history.cu.
//
// One thread works on all rows of one id, so that no row of the store is written twice.
#include "history.h"

#include <atomic>
#include <cmath>

#include "common/fold.h"
#include "row_loop.h"

namespace edgegrad::EG_ISA {
namespace {

using Batch = History::Batch;

// Elements per chunk of work: large enough to hide the scheduling of a chunk.
constexpr std::int64_t kChunkElements = 1 << 14;

EG_INLINE std::int64_t id_at(const Batch& b, std::int64_t i) {
  return b.wide ? static_cast<const std::int64_t*>(b.ids)[i]
                : static_cast<const std::int32_t*>(b.ids)[i];
}
// The position in the batch that comes p-th by id.
EG_INLINE std::int64_t position(const Batch& b, std::int64_t p) {
  return b.order == nullptr ? p : b.order[p];
}
EG_INLINE bool repeats(const Batch& b, std::int64_t p) {
  return b.order != nullptr && p > 0 && id_at(b, b.order[p]) == id_at(b, b.order[p - 1]);
}

template <typename Body> void for_positions(const Batch& b, const Body& body) {
  const std::int64_t step = kChunkElements / (b.dim + 1) + 1;
  parallel_for((b.n + step - 1) / step, num_threads(), [&](std::int64_t chunk, int) {
    const std::int64_t end = (chunk + 1) * step < b.n ? (chunk + 1) * step : b.n;
    for (std::int64_t p = chunk * step; p < end; ++p) body(p);
  });
}

// S: the store's type, R: that of the rows beside it.
template <typename S, typename R> struct Kernels {
  using A = accum_t<S>;

  static void copy(R* to, const S* from, std::int64_t dim, A scale) {
    if constexpr (sizeof(S) == sizeof(R)) {
      if (scale == A(1)) return copy_row(to, reinterpret_cast<const R*>(from), dim);
    }
    for (std::int64_t c = 0; c < dim; ++c) to[c] = narrow<R>(widen(from[c]) * scale);
  }

  static A clip(const S* row, std::int64_t dim, double max_norm) {
    double square = 0;
    for (std::int64_t c = 0; c < dim; ++c) {
      const double x = widen(row[c]);
      square += x * x;
    }
    const double norm = std::sqrt(square);
    return norm > max_norm ? static_cast<A>(max_norm / norm) : A(1);
  }

  static void gather(const Batch& b, const History::Gather& g) {
    for_positions(b, [&](std::int64_t p) {
      const std::int64_t i = position(b, p), row = id_at(b, i);
      R* to = b.rows.at<R>(0, i);
      if (row < 0 || repeats(b, p)) {
        const R other = narrow<R>(row < 0 ? static_cast<A>(g.fill) : A(0));
        for (std::int64_t c = 0; c < b.dim; ++c) to[c] = other;
        return;
      }
      S* from = b.store.at<S>(0, row);
      copy(to, from, b.dim, g.max_norm < 0 ? A(1) : clip(from, b.dim, g.max_norm));
      if (g.clear) std::memset(static_cast<void*>(from), 0, b.dim * sizeof(S));
    });
  }

  // Column c summed over the rows of one id: positions [p, end) by id.
  static A sum(const Batch& b, std::int64_t p, std::int64_t end, std::int64_t c) {
    const auto term = [&](std::int64_t q) {
      return static_cast<double>(widen(b.rows.at<R>(0, b.order[q])[c]));
    };
    double largest = 0;
    for (std::int64_t q = p; q < end; ++q) {
      const double size = std::fabs(term(q));
      largest = size > largest ? size : largest;
    }
    FoldedSum total(largest, end - p);
    for (std::int64_t q = p; q < end; ++q) total.add(term(q));
    return static_cast<A>(total.total());
  }

  static void write(S* to, A value, A keep, A factor) {
    const A update = factor * value;
    *to = narrow<S>(keep == A(0) ? update : keep * widen(*to) + update);
  }

  static void scatter(const Batch& b, const History::Scatter& s) {
    using Of = History::Scatter::Of;
    for_positions(b, [&](std::int64_t p) {
      const std::int64_t row = id_at(b, position(b, p));
      if (row < 0 || repeats(b, p)) return;
      std::int64_t end = p + 1;
      while (end < b.n && repeats(b, end)) ++end;
      // A reader of a memory-mapped store whose writer died sees from the age that a row is torn.
      if (s.age != nullptr) s.age[row] = -1;
      std::atomic_thread_fence(std::memory_order_release);
      S* to = b.store.at<S>(0, row);
      const R* from = b.rows.at<R>(0, position(b, end - 1));
      const A keep = static_cast<A>(s.keep);
      if (s.of == Of::last || end == p + 1) {
        const A factor = static_cast<A>(s.factor);
        if (sizeof(S) == sizeof(R) && keep == A(0) && factor == A(1)) {
          copy_row(to, reinterpret_cast<const S*>(from), b.dim);
        } else {
          for (std::int64_t c = 0; c < b.dim; ++c) write(to + c, widen(from[c]), keep, factor);
        }
      } else {
        const double count = s.of == Of::mean ? static_cast<double>(end - p) : 1;
        const A factor = static_cast<A>(s.factor / count);
        for (std::int64_t c = 0; c < b.dim; ++c) write(to + c, sum(b, p, end, c), keep, factor);
      }
      std::atomic_thread_fence(std::memory_order_release);
      if (s.age != nullptr) s.age[row] = s.step;
    });
  }
};

// Calls f(Kernels<S, R>) for the two types: the same, or float beside a half type.
template <typename F> void with_types(const Batch& b, const F& f) {
  const bool same = b.store_dtype == b.rows_dtype;
  switch (b.store_dtype) {
    case DType::float16:
      return same ? f(Kernels<half_t, half_t>()) : f(Kernels<half_t, float>());
    case DType::bfloat16:
      return same ? f(Kernels<bfloat16_t, bfloat16_t>()) : f(Kernels<bfloat16_t, float>());
    case DType::float32:
      if (b.rows_dtype == DType::float16) return f(Kernels<float, half_t>());
      if (b.rows_dtype == DType::bfloat16) return f(Kernels<float, bfloat16_t>());
      return f(Kernels<float, float>());
    default:
      return f(Kernels<double, double>());
  }
}

void gather(const Batch& b, const History::Gather& g) {
  with_types(b, [&](auto k) { decltype(k)::gather(b, g); });
}

void scatter(const Batch& b, const History::Scatter& s) {
  with_types(b, [&](auto k) { decltype(k)::scatter(b, s); });
}

constexpr History kFamily = {gather, scatter};

}  // namespace

const History& history() { return kFamily; }

}  // namespace edgegrad::EG_ISA
