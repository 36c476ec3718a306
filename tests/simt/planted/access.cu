// Access patterns whose cost is known.
#include "vec.cuh"

extern "C" __global__ void strided(float* to, const float* from, int stride) {
  to[threadIdx.x] = from[threadIdx.x * stride];
}

extern "C" __global__ void column(float* to, int pitch) {
  __shared__ float tile[32 * 33];
  tile[threadIdx.x * pitch] = 1.f;
  __syncthreads();
  to[threadIdx.x] = tile[threadIdx.x * pitch];
}

template <typename T, int N>
__global__ void copy(T* __restrict__ to, const T* __restrict__ from, int n) {
  const int i = N * (blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) Vec<T, N>::load(from + i).store(to + i);
}

// Block b makes b + 1 rounds: work that is not balanced.
extern "C" __global__ void triangle(float* to, const float* from) {
  float sum = 0;
  for (unsigned round = 0; round <= blockIdx.x; ++round) sum += from[32 * round + threadIdx.x];
  to[blockIdx.x * 32 + threadIdx.x] = sum;
}
