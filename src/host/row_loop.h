// The loop over rows that every row-wise host kernel shares; see rows.h for how rows are cut.
// Included only by files compiled per instruction set.
#pragma once
#include "parallel.h"
#include "rows.h"
#include "simd.h"

namespace edgegrad::EG_ISA {

// Adds up the sums of two runs of edges.
template <typename A> struct Add {
  std::int64_t width;
  void operator()(A* total, const A* part) const {
    for (std::int64_t c = 0; c < width; ++c) total[c] += part[c];
  }
};

// body(row) for every row, for work that does not depend on edges.
template <typename Body> void for_each_row(std::int64_t rows, const Body& body) {
  constexpr std::int64_t kRows = 64;
  parallel_for((rows + kRows - 1) / kRows, num_threads(), [&](std::int64_t chunk, int) {
    const std::int64_t last = chunk * kRows + kRows < rows ? chunk * kRows + kRows : rows;
    for (std::int64_t r = chunk * kRows; r < last; ++r) body(r);
  });
}

// A run of a row's edges. `slot` names a place for what is added up over rows: chunks of rows come
// first, then pieces; both depend on the graph alone.
struct Run {
  std::int64_t row, begin, end, slot;
  int thread;
  bool is_piece;  // of a row that is cut, or such a row
};

// walk(run, state) fills the `width` accumulators of a run, merge(total, other) adds those of the
// next run of the same row, finish(row, state) gets each row's total, the row as a run. A row that
// offers a place of its own by direct(row) has its state there, unless it is cut. Chunks are of
// about `work`.
template <typename A, typename O, typename Walk, typename Direct, typename Merge, typename Finish>
void for_runs(const O& offsets, std::int64_t rows, const Pieces& pieces, std::int64_t work,
              std::int64_t width, const Walk& walk, const Direct& direct, const Merge& merge,
              const Finish& finish) {
  const int threads = num_threads();
  const std::int64_t chunks = count_chunks(offsets, rows, work);
  const Scratch<A> partials(pieces.count * width), states(threads * width);
  parallel_for(pieces.count, threads, [&](std::int64_t i, int thread) {
    walk(Run{pieces.row[i], pieces.begin[i], pieces.end[i], chunks + i, thread, true},
         partials.get() + i * width);
  });
  parallel_for(chunks, threads, [&](std::int64_t chunk, int thread) {
    const std::int64_t last = row_at(offsets, rows, (chunk + 1) * work);
    for (std::int64_t r = row_at(offsets, rows, chunk * work); r < last; ++r) {
      const Run row{r,    std::int64_t(offsets[r]), std::int64_t(offsets[r + 1]), chunk, thread,
                    false};
      if (row.end - row.begin > pieces.limit) continue;
      A* to = direct(r);
      A* state = to == nullptr ? states.get() + thread * width : to;
      walk(row, state);
      finish(row, state);
    }
  });
  for (std::int64_t i = 0, n; i < pieces.count; i += n) {
    const std::int64_t r = pieces.row[i];
    A* total = partials.get() + i * width;
    for (n = 1; i + n < pieces.count && pieces.row[i + n] == r; ++n)
      merge(total, total + n * width);
    finish(Run{r, std::int64_t(offsets[r]), std::int64_t(offsets[r + 1]), chunks + i, 0, true},
           total);
  }
}

// compute(row, begin, end, sums) sums a run of a row's edges into `width` accumulators, which it
// sets; merge(total, part) adds a later run of the same row; finish(row, sums) gets each row's
// total. Rows whose type is its own accumulator are summed in place: direct(row) gives that place,
// or null.
template <typename A, typename O, typename Compute, typename Direct, typename Finish,
          typename Merge>
void for_rows(const O* offsets, std::int64_t rows, const Pieces& pieces, std::int64_t width,
              const Compute& compute, const Direct& direct, const Finish& finish,
              const Merge& merge) {
  for_runs<A>(
      offsets, rows, pieces, kChunkWork, width,
      [&](const Run& run, A* sums) { compute(run.row, run.begin, run.end, sums); }, direct, merge,
      [&](const Run& row, A* sums) { finish(row.row, sums); });
}

template <typename A, typename O, typename Compute, typename Direct, typename Finish>
void for_rows(const O* offsets, std::int64_t rows, const Pieces& pieces, std::int64_t width,
              const Compute& compute, const Direct& direct, const Finish& finish) {
  for_rows<A>(offsets, rows, pieces, width, compute, direct, finish, Add<A>{width});
}

// Rows whose edges are read twice: reduce(row, begin, end, parts) sets `width` parts of a run of a
// row's edges, which merge() joins in order, and map(row, begin, end, parts) goes over the edges
// again, given the row's.
template <typename Part, typename O, typename Reduce, typename Map>
void reduce_then_map(const O* offsets, std::int64_t rows, const Pieces& pieces, std::int64_t width,
                     const Reduce& reduce, const Map& map) {
  const int threads = num_threads();
  const Scratch<Part> of_pieces(pieces.count * width), of_threads(threads * width);
  parallel_for(pieces.count, threads, [&](std::int64_t i, int) {
    reduce(pieces.row[i], pieces.begin[i], pieces.end[i], of_pieces.get() + i * width);
  });
  for (std::int64_t i = 0, n; i < pieces.count; i += n) {
    Part* total = of_pieces.get() + i * width;
    for (n = 1; i + n < pieces.count && pieces.row[i + n] == pieces.row[i]; ++n)
      for (std::int64_t c = 0; c < width; ++c) total[c] = merge(total[c], total[n * width + c]);
    for (std::int64_t later = 1; later < n; ++later)
      for (std::int64_t c = 0; c < width; ++c) total[later * width + c] = total[c];
  }
  parallel_for(pieces.count, threads, [&](std::int64_t i, int) {
    map(pieces.row[i], pieces.begin[i], pieces.end[i], of_pieces.get() + i * width);
  });
  parallel_for(count_chunks(offsets, rows), threads, [&](std::int64_t chunk, int thread) {
    Part* parts = of_threads.get() + thread * width;
    const std::int64_t last = row_at(offsets, rows, (chunk + 1) * kChunkWork);
    for (std::int64_t r = row_at(offsets, rows, chunk * kChunkWork); r < last; ++r) {
      const std::int64_t begin = offsets[r], end = offsets[r + 1];
      if (begin == end || end - begin > pieces.limit) continue;
      reduce(r, begin, end, parts);
      map(r, begin, end, parts);
    }
  });
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
