// Rows of all heads side by side, in scratch that is padded to whole packs, and numbers per head.
// Included only by files compiled per instruction set.
#pragma once
#include "simd.h"

namespace edgegrad::EG_ISA {

// Scratch of n accumulators may be read and written up to this many.
template <typename A> EG_INLINE std::int64_t padded(std::int64_t n) {
  return (n + kLanes<A> - 1) / kLanes<A> * kLanes<A> + kLanes<A>;
}

// Columns c and on of a caller's row of n, which ends at its last element.
template <typename T> EG_INLINE Pack<accum_t<T>>
load_row(const T* row, std::int64_t c, std::int64_t n) {
  return c + kLanes<accum_t<T>> <= n ? load(row + c) : load_part(row + c, static_cast<int>(n - c));
}

template <typename A> EG_INLINE A sum_tree(Pack<A> v) {
  A x[kLanes<A>];
  store(x, v);
  for (int step = kLanes<A> / 2; step > 0; step /= 2)
    for (int i = 0; i < step; ++i) x[i] += x[i + step];
  return x[0];
}

// sums[h] = sum of the head's `width` columns of v.
template <typename A>
EG_INLINE void sum_heads(const A* v, std::int64_t heads, std::int64_t width, A* sums) {
  constexpr int kWidth = kLanes<A>;
  for (std::int64_t h = 0; h < heads; ++h) {
    const A* of_head = v + h * width;
    std::int64_t c = 0;
    A sum = A(0);
    if (width >= kWidth) {
      Pack<A> packs = load(of_head);
      for (c = kWidth; c + kWidth <= width; c += kWidth) packs += load(of_head + c);
      sum = sum_tree<A>(packs);
    }
    for (; c + 4 <= width; c += 4)
      sum += (of_head[c] + of_head[c + 2]) + (of_head[c + 1] + of_head[c + 3]);
    for (; c < width; ++c) sum += of_head[c];
    sums[h] = sum;
  }
}

// Repeats each head's number over its columns; writes up to a pack further than the last.
template <typename A>
EG_INLINE void expand_heads(const A* numbers, std::int64_t heads, std::int64_t width, A* wide) {
  for (std::int64_t h = 0; h < heads; ++h)
    for (std::int64_t c = 0; c < width; c += kLanes<A>)
      store(wide + h * width + c, Pack<A>{} + numbers[h]);
}

// to += k * v, all in padded scratch.
template <typename A> EG_INLINE void add_products(A* to, const A* k, const A* v, std::int64_t n) {
  for (std::int64_t c = 0; c < n; c += kLanes<A>)
    store(to + c, Pack<A>(load(to + c) + load(k + c) * load(v + c)));
}

// to += k * row, of a caller; where k is 0 the row may hold anything.
template <typename A, typename T>
EG_INLINE void add_row_products(A* to, const A* k, const T* row, std::int64_t n) {
  for (std::int64_t c = 0; c < n; c += kLanes<A>) {
    const Pack<A> factor = load(k + c), product = factor * load_row(row, c, n);
    store(to + c, Pack<A>(load(to + c) + (factor == Pack<A>{} ? Pack<A>{} : product)));
  }
}

// sums[h] = <v[h], row[h]>
template <typename A, typename T>
EG_INLINE void
dot_heads(const A* v, const T* row, std::int64_t heads, std::int64_t width, A* products, A* sums) {
  const std::int64_t n = heads * width;
  for (std::int64_t c = 0; c < n; c += kLanes<A>)
    store(products + c, Pack<A>(load(v + c) * load_row(row, c, n)));
  sum_heads(products, heads, width, sums);
}

}  // namespace edgegrad::EG_ISA
