// Row-wise work on a compressed graph: how it is cut, and what a kernel knows of an array of rows.
//
// Short rows go in chunks of about equal work; rows longer than the plan's limit are cut into
// pieces whose partial sums are added in order. Both cuts depend on the graph alone, so results
// do not depend on the number of threads.
#pragma once
#include <cstdint>

#include "dtype.h"

namespace edgegrad {

// A node array: [batch,] rows, columns; strides in elements.
struct Rows {
  void* data = nullptr;
  std::int64_t row = 0;
  std::int64_t batch = 0;

  template <typename T> T* at(std::int64_t b, std::int64_t r) const {
    return static_cast<T*>(data) + b * batch + r * row;
  }
};

// Pieces of the rows longer than `limit` edges, in order; see plan_pieces() in graph.cpp.
struct Pieces {
  std::int64_t limit = 0;
  std::int64_t count = 0;
  const std::int64_t* row = nullptr;
  const std::int64_t* begin = nullptr;
  const std::int64_t* end = nullptr;
};

// Work per chunk, counting a row as one edge: large enough to hide the scheduling of a chunk.
constexpr std::int64_t kChunkWork = 1024;

// Offsets are an array, or anything with an element for every row.
template <typename Offsets>
static std::int64_t
count_chunks(const Offsets& offsets, std::int64_t rows, std::int64_t work = kChunkWork) {
  return rows == 0 ? 0 : (static_cast<std::int64_t>(offsets[rows]) + rows - 1) / work + 1;
}

// The first row whose work begins at or after `work`.
template <typename Offsets>
static std::int64_t row_at(const Offsets& offsets, std::int64_t rows, std::int64_t work) {
  std::int64_t low = 0, high = rows;
  while (low < high) {
    const std::int64_t middle = (low + high) / 2;
    if (static_cast<std::int64_t>(offsets[middle]) + middle < work) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// The row that an edge belongs to; there is one.
template <typename IdxT>
static std::int64_t row_of_edge(const IdxT* offsets, std::int64_t rows, std::int64_t edge) {
  std::int64_t low = 0, high = rows;  // offsets[low] <= edge < offsets[high]
  while (high - low > 1) {
    const std::int64_t middle = (low + high) / 2;
    (static_cast<std::int64_t>(offsets[middle]) <= edge ? low : high) = middle;
  }
  return low;
}

}  // namespace edgegrad
