// Mistakes in addressing: out of bounds, misaligned, never written, written though const.
#include "vec.cuh"

// output[v] = sum of the values between two offsets
__global__ void segment_sum(float* __restrict__ output, const float* __restrict__ values,
                            const int* __restrict__ offsets, int n) {
  const int v = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef BUG_ONE_TOO_MANY
  if (v > n) return;
#else
  if (v >= n) return;
#endif
  float sum = 0;
  for (int e = __ldg(offsets + v); e < __ldg(offsets + v + 1); ++e) sum += values[e];
#ifdef BUG_ROW_UNWRITTEN
  if (v == 0) return;
#endif
#ifdef BUG_STORE_OUTSIDE
  output[v + 1] = sum;
#else
  output[v] = sum;
#endif
}

__global__ void vector_copy(float* __restrict__ to, const float* __restrict__ from, int n) {
  const int i = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) Vec<float, 4>::load(from + i).store(to + i);
}

__global__ void
read_only_vector_copy(float* __restrict__ to, const float* __restrict__ from, int n) {
  const int i = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) __ldg(reinterpret_cast<const Vec<float, 4>*>(from + i)).store(to + i);
}

// Rotates the elements of a block by one through dynamic shared memory.
extern "C" __global__ void rotate(float* to, const float* from) {
  extern __shared__ float staged[];
  staged[threadIdx.x] = from[threadIdx.x];
  __syncthreads();
  to[threadIdx.x] = staged[(threadIdx.x + 1) % blockDim.x];
}

extern "C" __global__ void static_overrun(float* to, int offset) {
  __shared__ float first[8];
  __shared__ float second[8];
  for (int i = 0; i < 8; ++i) first[i] = second[i] = 0;
  to[0] = first[offset];
}

extern "C" __global__ void local_overrun(int* to, int i) {
  int table[4] = {0, 1, 2, 3};
  to[0] = table[i];
}

extern "C" __global__ void write_const(const float* from) { const_cast<float*>(from)[0] = 1; }

extern "C" __global__ void copy(float* to, const float* from, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) to[i] = from[i];
}

extern "C" __global__ void uninitialised_shared(float* to) {
  __shared__ float never[32];
  if (to == nullptr) never[0] = 1;
  to[threadIdx.x] = never[threadIdx.x];
}

// The address of an array that is not among the arguments, smuggled in as a number.
extern "C" __global__ void through_number(float* to, long long address) {
  to[0] = *reinterpret_cast<const float*>(address);
}

extern "C" __global__ void write_far(int* to, long long i) { to[i] = 1; }

extern "C" __global__ void divide(int* to, int by) { to[0] = 7 / by; }

extern "C" __global__ void deep(int* to, int n) {
  volatile char local[80000];
  for (int i = 0; i < n; ++i) local[i] = 1;
  to[0] = local[0];
}
