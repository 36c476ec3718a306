// Vectors of accumulators, loaded from any feature type. Included only by files compiled per
// instruction set; everything lives in that set's namespace, so that no definition is shared.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

#include "common/half.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif
#if defined(__linux__)
#include <sys/mman.h>
#endif

#define EG_INLINE inline __attribute__((always_inline))

namespace edgegrad::EG_ISA {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif

template <typename A> struct PackOf {
  typedef A type __attribute__((vector_size(kVectorBytes)));
};
template <typename A> using Pack = typename PackOf<A>::type;

// A pack in memory. It may alias its accumulators but, unlike bytes that memcpy moves, nothing
// else: what a loop reads besides stays in registers.
template <typename A> struct PackInMemory {
  typedef A type __attribute__((vector_size(kVectorBytes), aligned(alignof(A))));
};
template <typename A> constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(A));

// The first n lanes of a pack; the others are 0.
template <typename T> EG_INLINE Pack<accum_t<T>> load_part(const T* p, int n) {
  using A = accum_t<T>;
  // By way of memory: lanes of registers have no number at run time.
  A lanes[kLanes<A>] = {};
  for (int i = 0; i < n; ++i) lanes[i] = widen(p[i]);
  return *reinterpret_cast<const typename PackInMemory<A>::type*>(lanes);
}

template <typename T> EG_INLINE Pack<accum_t<T>> load(const T* p) {
  using A = accum_t<T>;
  if constexpr (sizeof(T) == sizeof(A)) {
    return *reinterpret_cast<const typename PackInMemory<A>::type*>(p);
  } else {
    Pack<A> v;
    for (int i = 0; i < kLanes<A>; ++i) v[i] = widen(p[i]);
    return v;
  }
}

#if defined(__AVX512F__)
template <> EG_INLINE Pack<float> load_part<float>(const float* p, int n) {
  return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << n) - 1u), p);
}
template <> EG_INLINE Pack<double> load_part<double>(const double* p, int n) {
  return _mm512_maskz_loadu_pd(static_cast<__mmask8>((1u << n) - 1u), p);
}
template <> EG_INLINE Pack<float> load<half_t>(const half_t* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
template <> EG_INLINE Pack<float> load<bfloat16_t>(const bfloat16_t* p) {
  const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}
#elif defined(__AVX2__)
template <> EG_INLINE Pack<float> load_part<float>(const float* p, int n) {
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_maskload_ps(p, _mm256_cmpgt_epi32(_mm256_set1_epi32(n), lane));
}
template <> EG_INLINE Pack<double> load_part<double>(const double* p, int n) {
  const __m256i lane = _mm256_setr_epi64x(0, 1, 2, 3);
  return _mm256_maskload_pd(p, _mm256_cmpgt_epi64(_mm256_set1_epi64x(n), lane));
}
template <> EG_INLINE Pack<float> load<half_t>(const half_t* p) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
template <> EG_INLINE Pack<float> load<bfloat16_t>(const bfloat16_t* p) {
  const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}
#endif

template <typename A> EG_INLINE void store(A* p, Pack<A> v) {
  *reinterpret_cast<typename PackInMemory<A>::type*>(p) = v;
}
template <typename A> EG_INLINE void store_part(A* p, Pack<A> v, int n) {
  A lanes[kLanes<A>];
  store(lanes, v);
  for (int i = 0; i < n; ++i) p[i] = lanes[i];
}

// Rounded once to the type of the array.
template <typename T> EG_INLINE void store_as(T* p, Pack<accum_t<T>> v) {
  if constexpr (sizeof(T) == sizeof(accum_t<T>)) {
    store(p, v);
  } else {
    for (int i = 0; i < kLanes<float>; ++i) p[i] = narrow<T>(v[i]);
  }
}

#if defined(__AVX512F__)
template <> EG_INLINE void store_as<half_t>(half_t* p, Pack<float> v) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}
#elif defined(__AVX2__)
template <> EG_INLINE void store_as<half_t>(half_t* p, Pack<float> v) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}
#endif

// Integers of the size of an accumulator: a pack's comparisons, or numbers beside its lanes.
template <typename V> struct LanesOf {
  using type = decltype(V{} < V{});
};
template <> struct LanesOf<float> {
  using type = std::int32_t;
};
template <> struct LanesOf<double> {
  using type = std::int64_t;
};
template <typename V> using Lanes = typename LanesOf<V>::type;

// A pack, or a single accumulator where a row is narrower than one.
template <typename V, typename T> EG_INLINE V load_as(const T* p) {
  if constexpr (sizeof(V) == sizeof(accum_t<T>)) {
    return widen(*p);
  } else {
    return load(p);
  }
}

// Lanes of p that hold `value`, as all-ones integers of the accumulator's size.
template <typename V, typename A, typename I> EG_INLINE auto lanes_equal(const I* p, I value) {
  if constexpr (sizeof(V) == sizeof(A)) {
    return *p == value;
  } else {
    typedef I Ids __attribute__((vector_size(kLanes<A> * sizeof(I))));
    Ids ids;
    std::memcpy(&ids, p, sizeof ids);
    return __builtin_convertvector(ids == value, Lanes<V>);
  }
}

template <typename A> EG_INLINE A sum_lanes(Pack<A> v) {
  A total = 0;
  for (int i = 0; i < kLanes<A>; ++i) total += v[i];
  return total;
}

template <typename T> EG_INLINE void prefetch_row(const T* row, std::int64_t dim) {
  for (std::int64_t byte = 0; byte < dim * static_cast<std::int64_t>(sizeof(T)); byte += 64)
    __builtin_prefetch(reinterpret_cast<const char*>(row) + byte);
}

// Uninitialised scratch; std::vector would share its out-of-line code between instruction sets.
// It begins with a cache line; much of it is in huge pages, which are cleared faster on first touch
// and found faster by reads here and there.
template <typename V> class Scratch {
 public:
  explicit Scratch(std::int64_t n) {
    constexpr std::size_t kLine = 64, kHuge = std::size_t(1) << 21;
    const std::size_t wanted = static_cast<std::size_t>(n > 0 ? n : 1) * sizeof(V);
    const std::size_t unit = wanted < 2 * kHuge ? kLine : kHuge;
    const std::size_t bytes = (wanted + unit - 1) / unit * unit;
    data_ = static_cast<V*>(std::aligned_alloc(unit, bytes));
    if (data_ == nullptr) throw std::bad_alloc();
#if defined(MADV_HUGEPAGE)
    if (unit == kHuge) madvise(data_, bytes, MADV_HUGEPAGE);
#endif
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { std::free(data_); }
  V* get() const { return data_; }
  V& operator[](std::int64_t i) const { return data_[i]; }

 private:
  V* data_;
};

}  // namespace edgegrad::EG_ISA
