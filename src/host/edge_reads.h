// Typed reads of what edges.h describes. Included only by files compiled per instruction set.
#pragma once
#include "edges.h"
#include "simd.h"

namespace edgegrad::EG_ISA {

template <typename T>
EG_INLINE accum_t<T> read_as(const void* data, DType dtype, DType native, std::int64_t i) {
  if (dtype == native) return widen(static_cast<const T*>(data)[i]);
  return static_cast<accum_t<T>>(static_cast<const float*>(data)[i]);
}

template <typename I> EG_INLINE std::int64_t position_of(const Edges& g, std::int64_t e) {
  return g.order == nullptr ? e : std::int64_t(static_cast<const I*>(g.order)[e]);
}

template <typename I> EG_INLINE std::int64_t edge_id_of(const Edges& g, std::int64_t position) {
  return g.map == nullptr ? position : std::int64_t(static_cast<const I*>(g.map)[position]);
}

// The row that edge e reads.
template <typename I> EG_INLINE std::int64_t row_read(const Edges& g, std::int64_t e) {
  if (g.ids != nullptr) return static_cast<const I*>(g.ids)[e];
  return edge_id_of<I>(g, position_of<I>(g, e));
}

// The divisor of a row; 1 without one, 0 only for a sum that is 0.
template <typename T, typename I>
EG_INLINE accum_t<T> divisor_of(const Divisor& d, DType native, std::int64_t r) {
  using A = accum_t<T>;
  if (d.sums != nullptr) return read_as<T>(d.sums, d.sums_dtype, native, r);
  if (d.offsets == nullptr) return A(1);
  const I* offsets = static_cast<const I*>(d.offsets);
  const I n = offsets[r + 1] - offsets[r];
  return n == 0 ? A(1) : A(n);
}

// Gradient of a variance (of a standard deviation where `deviation` is given) with respect to one
// value x of it, but for the number of values.
template <typename T>
EG_INLINE accum_t<T> spread_gradient(const T* g, const T* x, const accum_t<T>* mean,
                                     const T* deviation, std::int64_t c) {
  using A = accum_t<T>;
  const A from_mean = widen(g[c]) * (widen(x[c]) - mean[c]);
  if (deviation == nullptr) return A(2) * from_mean;
  const A s = widen(deviation[c]);
  return s == A(0) ? A(0) : from_mean / s;
}

}  // namespace edgegrad::EG_ISA
