// The loop over rows that every row-wise host kernel shares; see rows.h for how rows are cut.
// Included only by files compiled per instruction set.
#pragma once
#include "parallel.h"
#include "rows.h"
#include "simd.h"

namespace edgegrad::EG_ISA {

// A run of a row's edges. `slot` names a place for what is added up over rows: chunks of rows come
// first, then pieces; both depend on the graph alone.
struct Part {
  std::int64_t row, begin, end, slot;
  int thread;
};

// walk(part, state) fills the `width` accumulators of a part, merge(total, other) adds those of the
// next piece of a row, finish(part, state) gets each row's total. A row that offers a place of its
// own by direct(row) has its state there, unless it is cut.
template <typename A, typename O, typename Walk, typename Direct, typename Merge, typename Finish>
void for_parts(const O& offsets, std::int64_t rows, const Pieces& pieces, std::int64_t work,
               std::int64_t width, const Walk& walk, const Direct& direct, const Merge& merge,
               const Finish& finish) {
  const int threads = num_threads();
  const std::int64_t chunks = count_chunks(offsets, rows, work);
  const Scratch<A> partials(pieces.count * width), states(threads * width);
  parallel_for(pieces.count, threads, [&](std::int64_t i, int thread) {
    walk(Part{pieces.row[i], pieces.begin[i], pieces.end[i], chunks + i, thread},
         partials.get() + i * width);
  });
  parallel_for(chunks, threads, [&](std::int64_t chunk, int thread) {
    const std::int64_t last = row_at(offsets, rows, (chunk + 1) * work);
    for (std::int64_t r = row_at(offsets, rows, chunk * work); r < last; ++r) {
      const Part part{r, std::int64_t(offsets[r]), std::int64_t(offsets[r + 1]), chunk, thread};
      if (part.end - part.begin > pieces.limit) continue;
      A* to = direct(r);
      A* state = to == nullptr ? states.get() + thread * width : to;
      walk(part, state);
      finish(part, state);
    }
  });
  for (std::int64_t i = 0, n; i < pieces.count; i += n) {
    const std::int64_t r = pieces.row[i];
    A* total = partials.get() + i * width;
    for (n = 1; i + n < pieces.count && pieces.row[i + n] == r; ++n)
      merge(total, total + n * width);
    finish(Part{r, std::int64_t(offsets[r]), std::int64_t(offsets[r + 1]), chunks + i, 0}, total);
  }
}

// for_parts where states are sums: compute(row, begin, end, sums), finish(row, sums).
template <typename A, typename O, typename Compute, typename Direct, typename Finish>
void for_rows(const O& offsets, std::int64_t rows, const Pieces& pieces, std::int64_t width,
              const Compute& compute, const Direct& direct, const Finish& finish) {
  for_parts<A>(
      offsets, rows, pieces, kChunkWork, width,
      [&](const Part& part, A* sums) { compute(part.row, part.begin, part.end, sums); }, direct,
      [&](A* total, const A* other) {
        for (std::int64_t c = 0; c < width; ++c) total[c] += other[c];
      },
      [&](const Part& part, A* sums) { finish(part.row, sums); });
}

// The row itself where it can hold its sums, else null.
template <typename T> EG_INLINE accum_t<T>* in_place(T* row) {
  if constexpr (sizeof(T) == sizeof(accum_t<T>)) {
    return row;
  } else {
    return nullptr;
  }
}

template <typename T>
EG_INLINE void write_row(T* to, const accum_t<T>* from, std::int64_t width, accum_t<T> scale) {
  for (std::int64_t c = 0; c < width; ++c) to[c] = narrow<T>(from[c] * scale);
}

template <typename T> EG_INLINE void copy_row(T* to, const T* from, std::int64_t width) {
  std::memcpy(static_cast<void*>(to), from, static_cast<std::size_t>(width) * sizeof(T));
}

}  // namespace edgegrad::EG_ISA
