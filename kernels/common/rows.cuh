// Row-wise work on a compressed graph, as plans cut it.
//
// A first launch takes every row of at most `limit` edges as one item. Longer rows come as a list
// of pieces; a second launch of the same kernel leaves their sums in `partials`, and a third adds
// those up in piece order. Both cuts depend on the graph alone: no atomics, the same bits always.
#pragma once
#include "common/ids.h"
#include "common/portable.h"

namespace edgegrad {

// Named resident blocks keep ptxas from trading a few spilled bytes for occupancy.
constexpr int kBlockThreads = 256;
constexpr int kResidentBlocks = 4;

template <typename T> struct NodeArray {  // [batch,] rows, columns
  T* data;
  index_t row, batch;
  __device__ __forceinline__ T* at(index_t b, index_t r) const {
    return data + b * batch + r * row;
  }
};

struct Pieces {
  const index_t *row, *begin, *end;  // null: items are rows
  index_t n_items, limit;
};

struct Item {
  index_t row, begin, end;
};

// Item i, or one with begin > end if the row belongs to the pieces' launch.
template <typename Offsets>
__device__ __forceinline__ Item item_at(const Pieces& pieces, const Offsets& offsets, index_t i) {
  if (pieces.row) return {pieces.row[i], pieces.begin[i], pieces.end[i]};
  const index_t begin = offsets[i], end = offsets[i + 1];
  return {i, begin, end - begin > pieces.limit ? begin - 1 : end};
}

__device__ __forceinline__ index_t first_item() {
  return static_cast<index_t>(blockIdx.x) * blockDim.y + threadIdx.y;
}
__device__ __forceinline__ index_t item_stride() {
  return static_cast<index_t>(gridDim.x) * blockDim.y;
}

// The row that an edge belongs to; there is one.
template <typename IdxT>
__device__ __forceinline__ index_t row_of_edge(const IdxT* offsets, index_t rows, index_t edge) {
  index_t low = 0, high = rows;  // offsets[low] <= edge < offsets[high]
  while (high - low > 1) {
    const index_t middle = (low + high) / 2;
    if (offsets[middle] <= edge) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

}  // namespace edgegrad
