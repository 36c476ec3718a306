// Rows of all heads side by side, gone over in packs, and numbers per head.
//
// Scratch pads every head to whole packs with zeros, and numbers to whole packs of heads; rows of
// callers lie without gaps.
// Included only by files compiled per instruction set.
#pragma once
#include "simd.h"

namespace edgegrad::EG_ISA {

// How a head's columns lie in packs: in kPacks of them exactly, or if that is 0 in any number, of
// which the last may be a part.
template <typename A, int kPacks> struct HeadShape {
  static constexpr std::int64_t kWidth = kLanes<A>;
  std::int64_t heads, width;

  bool fits() const { return kPacks == 0 || width == kPacks * kWidth; }
  std::int64_t whole() const { return kPacks > 0 ? kPacks : width / kWidth; }
  std::int64_t tail() const { return kPacks > 0 ? 0 : width % kWidth; }
  std::int64_t padded() const { return kWidth * (whole() + (tail() > 0)); }
  std::int64_t size() const { return heads * padded(); }
};

template <typename A> EG_INLINE std::int64_t padded_heads(std::int64_t heads) {
  return (heads + kLanes<A> - 1) / kLanes<A> * kLanes<A>;
}

// Columns of a caller's row that fill a pack, or a part of one.
struct WholePack {
  template <typename T> EG_INLINE Pack<accum_t<T>> load(const T* p) const {
    return EG_ISA::load(p);
  }
  template <typename T> EG_INLINE void store(T* p, Pack<accum_t<T>> v) const { store_as(p, v); }
};
struct PartOfPack {
  int n;
  template <typename T> EG_INLINE Pack<accum_t<T>> load(const T* p) const {
    return load_part(p, n);
  }
  template <typename T> EG_INLINE void store(T* p, Pack<accum_t<T>> v) const {
    accum_t<T> lanes[kLanes<accum_t<T>>];
    EG_ISA::store(lanes, v);
    for (int i = 0; i < n; ++i) p[i] = narrow<T>(lanes[i]);
  }
};

// body(c, part) for every pack of a head's columns, the first of which is c.
template <typename A, int kPacks, typename Body>
EG_INLINE void for_packs(const HeadShape<A, kPacks>& s, const Body& body) {
  std::int64_t c = 0;
  for (; c < s.whole() * kLanes<A>; c += kLanes<A>) body(c, WholePack{});
  if (s.tail() > 0) body(c, PartOfPack{static_cast<int>(s.tail())});
}

// body(h, padded, c, part): `padded` is the place of column c of head h in a padded row.
template <typename A, int kPacks, typename Body>
EG_INLINE void for_columns(const HeadShape<A, kPacks>& s, const Body& body) {
  for (std::int64_t h = 0; h < s.heads; ++h)
    for_packs(s, [&](std::int64_t c, auto part) { body(h, h * s.padded() + c, c, part); });
}

// Lane i: the sum of pack i, of kLanes<A> packs.
template <typename A> EG_INLINE Pack<A> sum_packs(const Pack<A>* v) {
  A sums[kLanes<A>];
  for (int i = 0; i < kLanes<A>; ++i) sums[i] = sum_lanes<A>(v[i]);
  return load(sums);
}
#if defined(__AVX2__)
EG_INLINE __m256 sum_eight(const __m256* v) {
  const __m256 low = _mm256_hadd_ps(_mm256_hadd_ps(v[0], v[1]), _mm256_hadd_ps(v[2], v[3]));
  const __m256 high = _mm256_hadd_ps(_mm256_hadd_ps(v[4], v[5]), _mm256_hadd_ps(v[6], v[7]));
  return _mm256_add_ps(_mm256_permute2f128_ps(low, high, 0x20),
                       _mm256_permute2f128_ps(low, high, 0x31));
}
EG_INLINE __m256d sum_four(const __m256d* v) {
  const __m256d low = _mm256_hadd_pd(v[0], v[1]), high = _mm256_hadd_pd(v[2], v[3]);
  return _mm256_add_pd(_mm256_permute2f128_pd(low, high, 0x20),
                       _mm256_permute2f128_pd(low, high, 0x31));
}
#endif
#if defined(__AVX512F__)
template <> EG_INLINE Pack<float> sum_packs<float>(const Pack<float>* v) {
  __m256 half[16];
  for (int i = 0; i < 16; ++i)
    half[i] = _mm256_add_ps(_mm512_castps512_ps256(v[i]), _mm512_extractf32x8_ps(v[i], 1));
  return _mm512_insertf32x8(_mm512_castps256_ps512(sum_eight(half)), sum_eight(half + 8), 1);
}
template <> EG_INLINE Pack<double> sum_packs<double>(const Pack<double>* v) {
  __m256d half[8];
  for (int i = 0; i < 8; ++i)
    half[i] = _mm256_add_pd(_mm512_castpd512_pd256(v[i]), _mm512_extractf64x4_pd(v[i], 1));
  return _mm512_insertf64x4(_mm512_castpd256_pd512(sum_four(half)), sum_four(half + 4), 1);
}
#elif defined(__AVX2__)
template <> EG_INLINE Pack<float> sum_packs<float>(const Pack<float>* v) { return sum_eight(v); }
template <> EG_INLINE Pack<double> sum_packs<double>(const Pack<double>* v) { return sum_four(v); }
#endif

// sums[h] = the sum over packs of product(h, padded, c, part); see for_columns. `sums` is padded.
template <typename A, int kPacks, typename Product>
EG_INLINE void sum_columns(const HeadShape<A, kPacks>& s, A* sums, const Product& product) {
  constexpr int kWidth = kLanes<A>;
  for (std::int64_t first = 0; first < s.heads; first += kWidth) {
    Pack<A> of_head[kWidth];
    const auto add_up = [&](int i) {
      Pack<A> sum = {};
      const std::int64_t h = first + i;
      for_packs(s,
                [&](std::int64_t c, auto part) { sum += product(h, h * s.padded() + c, c, part); });
      of_head[i] = sum;
    };
    if (s.heads - first >= kWidth) {
      for (int i = 0; i < kWidth; ++i) add_up(i);
    } else {
      for (int i = 0; i < kWidth; ++i) of_head[i] = Pack<A>{};
      for (int i = 0; i < s.heads - first; ++i) add_up(i);
    }
    store(sums + first, sum_packs<A>(of_head));
  }
}

// sums[h] = <padded[h], row[h]>. The row's heads are `stride` apart: 0 if all share its columns.
template <typename A, int kPacks, typename T>
EG_INLINE void dot_heads(const HeadShape<A, kPacks>& s, const A* padded, const T* row,
                         std::int64_t stride, A* sums) {
  sum_columns(s, sums, [&](std::int64_t h, std::int64_t at, std::int64_t c, auto part) {
    return load(padded + at) * part.load(row + h * stride + c);
  });
}

// to += numbers[h] * row[h]
template <typename A, int kPacks, typename T>
EG_INLINE void add_scaled(const HeadShape<A, kPacks>& s, A* to, const A* numbers, const T* row,
                          std::int64_t stride) {
  for_columns(s, [&](std::int64_t h, std::int64_t at, std::int64_t c, auto part) {
    store(to + at, Pack<A>(load(to + at) + numbers[h] * part.load(row + h * stride + c)));
  });
}

// The same, where a row whose number is 0 may hold anything.
template <typename A, int kPacks, typename T>
EG_INLINE void
add_scaled_if_any(const HeadShape<A, kPacks>& s, A* to, const A* numbers, const T* row) {
  for (std::int64_t h = 0; h < s.heads; ++h) {
    if (numbers[h] == A(0)) continue;
    for_packs(s, [&](std::int64_t c, auto part) {
      A* at = to + h * s.padded() + c;
      store(at, Pack<A>(load(at) + numbers[h] * part.load(row + h * s.width + c)));
    });
  }
}

// to[h] = numbers[h] * by[h], all padded
template <typename A, int kPacks>
EG_INLINE void scale_heads(const HeadShape<A, kPacks>& s, A* to, const A* numbers, const A* by) {
  for_columns(s, [&](std::int64_t h, std::int64_t at, std::int64_t, auto) {
    store(to + at, Pack<A>(numbers[h] * load(by + at)));
  });
}

// A caller's row, times `scale`, padded; heads `stride` apart as in dot_heads.
template <typename A, int kPacks, typename T>
EG_INLINE void
pad_row(const HeadShape<A, kPacks>& s, A* to, const T* row, std::int64_t stride, A scale = A(1)) {
  for_columns(s, [&](std::int64_t h, std::int64_t at, std::int64_t c, auto part) {
    store(to + at, Pack<A>(part.load(row + h * stride + c) * scale));
  });
}

template <typename T, typename A, int kPacks>
EG_INLINE void write_heads(const HeadShape<A, kPacks>& s, T* to, const A* padded) {
  for_columns(s, [&](std::int64_t h, std::int64_t at, std::int64_t c, auto part) {
    part.store(to + h * s.width + c, load(padded + at));
  });
}

template <typename A> EG_INLINE void fill(A* to, std::int64_t n, A value) {
  for (std::int64_t i = 0; i < n; ++i) to[i] = value;
}

// Prefetches the beginning of a row; of long rows the hardware fetches the rest.
template <typename T> EG_INLINE void prefetch_start(const T* row, std::int64_t n) {
  const char* from = reinterpret_cast<const char*>(row);
  const std::int64_t bytes = n * static_cast<std::int64_t>(sizeof(T));
  __builtin_prefetch(from);
  if (bytes > 64) __builtin_prefetch(from + 64);
  if (bytes > 128) __builtin_prefetch(from + 128);
  if (bytes > 192) __builtin_prefetch(from + 192);
}

}  // namespace edgegrad::EG_ISA
