// Aligned groups of elements: one load or store of up to 16 bytes.
#pragma once
#include "common/half.h"

namespace edgegrad {

template <typename T, int N> struct alignas(sizeof(T) * N) Vec {
  T v[N];
};

// `p` must be a multiple of sizeof(T) * N; plans choose N so.
template <typename T, int N>
__device__ __forceinline__ Vec<T, N> load_whole(const T* __restrict__ p) {
  return *reinterpret_cast<const Vec<T, N>*>(p);
}

template <typename T, int N>
__device__ __forceinline__ void load_vec(accum_t<T> (&to)[N], const T* __restrict__ p) {
  const Vec<T, N> x = load_whole<T, N>(p);
#pragma unroll
  for (int i = 0; i < N; ++i) to[i] = widen(x.v[i]);
}

// The compiler may split the store of a struct, or merge two and forget their alignment; it leaves
// the store instruction of a built-in vector alone.
template <int BYTES> struct Word;
template <> struct Word<2> {
  using type = unsigned short;
};
template <> struct Word<4> {
  using type = unsigned;
};
template <> struct Word<8> {
  using type = uint2;
};
template <> struct Word<16> {
  using type = uint4;
};

template <typename T, int N> __device__ __forceinline__ void store_whole(T* p, const Vec<T, N>& x) {
  using W = typename Word<sizeof(x)>::type;
  __stwb(reinterpret_cast<W*>(p), bit_cast<W>(x));
}

template <typename T, int N>
__device__ __forceinline__ void store_vec(T* p, const accum_t<T> (&from)[N]) {
  Vec<T, N> x;
#pragma unroll
  for (int i = 0; i < N; ++i) x.v[i] = narrow<T>(from[i]);
  store_whole(p, x);
}

// Sums left for a later kernel, in accesses of up to 16 bytes; `to` is aligned like a Vec<T, N>.
template <typename A, int N> __device__ __forceinline__ void store_sums(A* to, const A (&from)[N]) {
  constexpr int kWidth = N * sizeof(A) > 16 ? 16 / sizeof(A) : N;
#pragma unroll
  for (int i = 0; i < N; i += kWidth) {
    Vec<A, kWidth> x;
#pragma unroll
    for (int j = 0; j < kWidth; ++j) x.v[j] = from[i + j];
    store_whole(to + i, x);
  }
}

// Small parameter arrays come as T or, beside half types, as float.
template <typename T>
__device__ __forceinline__ accum_t<T> load_companion(const void* p, int is_float, index_t i) {
  if (is_float) return static_cast<accum_t<T>>(static_cast<const float*>(p)[i]);
  return widen(static_cast<const T*>(p)[i]);
}

template <typename T>
__device__ __forceinline__ void store_companion(void* p, int is_float, index_t i, accum_t<T> x) {
  if (is_float) {
    static_cast<float*>(p)[i] = static_cast<float>(x);
  } else {
    static_cast<T*>(p)[i] = narrow<T>(x);
  }
}

}  // namespace edgegrad
