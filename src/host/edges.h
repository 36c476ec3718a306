// Edges as kernels read them: which rows they belong to, which rows they read, what scales those.
#pragma once
#include <cstdint>

#include "dtype.h"
#include "rows.h"

namespace edgegrad {

// Edges grouped by row. Arrays are ids of the graph's width.
struct Edges {
  std::int64_t rows = 0, count = 0;
  const void* offsets = nullptr;  // null: rows without edges
  const void* ids = nullptr;      // row read by each edge; null: the row of its edge id
  const void* order = nullptr;    // CSC position of each edge; null: they are in CSC order
  const void* map = nullptr;      // edge id of each position; null: the position
};

// A factor per CSC position, or one for each head side by side; data null: 1.
struct Factor {
  void* data = nullptr;
  DType dtype = DType::float32;
  std::int64_t row = 1;
};

// What a row is divided by: the number of its edges, or a sum; both null: 1. Nothing of a row whose
// divisor is 0 passes.
struct Divisor {
  const void* offsets = nullptr;
  const void* sums = nullptr;
  DType sums_dtype = DType::float32;
};

// Rows that sums begin with: row ids[r] (null: r) for the first `count` rows r.
struct Start {
  Rows rows;
  bool is_accumulator = false;
  const void* ids = nullptr;
  std::int64_t count = 0;
};

}  // namespace edgegrad
