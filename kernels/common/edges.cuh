// Edges as kernels walk them: grouped by row, each reading a row of nodes or of edges.
#pragma once
#include "common/rows.cuh"
#include "common/vec.cuh"

namespace edgegrad {

// Edge e is at CSC position order[e] (null: e) and reads row ids[e] (null: the row of its edge id,
// map[position]; null: of its position). Null offsets: rows without edges.
template <typename IdxT> struct Edges {
  const IdxT *offsets, *ids, *order, *map;

  __device__ __forceinline__ index_t position(index_t e) const { return order ? order[e] : e; }
  __device__ __forceinline__ index_t id(index_t position) const {
    return map ? map[position] : position;
  }
  __device__ __forceinline__ index_t row_read(index_t e) const {
    return ids ? ids[e] : id(position(e));
  }
  __device__ __forceinline__ Item item(const Pieces& pieces, index_t i) const {
    if (!offsets) return {i, 0, 0};
    return item_at(pieces, offsets, i);
  }
};

// What a row is divided by: the number of its edges, or a sum; both null: 1. Nothing of a row whose
// divisor is 0 passes.
template <typename T, typename IdxT> struct Divisor {
  const IdxT* offsets;
  const void* sums;
  int sums_are_float;

  __device__ __forceinline__ accum_t<T> of(index_t row) const {
    if (sums) return load_companion<T>(sums, sums_are_float, row);
    if (!offsets) return accum_t<T>(1);
    const index_t n = offsets[row + 1] - offsets[row];
    return n == 0 ? accum_t<T>(1) : static_cast<accum_t<T>>(n);
  }
};

// A factor per CSC position, or one for each head side by side; null: 1.
template <typename T> struct Factor {
  const void* data;
  index_t row;
  int is_float;

  __device__ __forceinline__ accum_t<T> of(index_t position, int head) const {
    if (!data) return accum_t<T>(1);
    return load_companion<T>(data, is_float, position * row + head);
  }
};

// Gradient of a variance (of a standard deviation s, where that is kept) with respect to one value
// x of it, but for the number of values.
template <typename A>
__device__ __forceinline__ A spread_gradient(A g, A x, A mean, bool is_deviation, A s) {
  const A from_mean = g * (x - mean);
  if (!is_deviation) return A(2) * from_mean;
  return s == A(0) ? A(0) : from_mean / s;
}

// Ids next to each other, in accesses of up to 16 bytes.
template <typename IdxT, int N>
__device__ __forceinline__ void load_ids(IdxT (&to)[N], const IdxT* __restrict__ p) {
  constexpr int kWidth = N * sizeof(IdxT) > 16 ? 16 / sizeof(IdxT) : N;
#pragma unroll
  for (int i = 0; i < N; i += kWidth) {
    const Vec<IdxT, kWidth> x = *reinterpret_cast<const Vec<IdxT, kWidth>*>(p + i);
#pragma unroll
    for (int j = 0; j < kWidth; ++j) to[i + j] = x.v[j];
  }
}

}  // namespace edgegrad
