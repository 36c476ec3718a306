// N elements that are moved by one instruction, in the form the library's kernels use.
#pragma once

template <typename T, int N> struct alignas(sizeof(T) * N) Vec {
  T element[N];

  __device__ T& operator[](int i) { return element[i]; }
  __device__ const T& operator[](int i) const { return element[i]; }
  __device__ static Vec load(const T* from) { return *reinterpret_cast<const Vec*>(from); }
  __device__ void store(T* to) const { *reinterpret_cast<Vec*>(to) = *this; }
};
