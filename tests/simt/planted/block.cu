// A sum over the block by a tree in shared memory, and the mistakes made with its barriers.

extern "C" __global__ void block_sum(float* output, const float* input, int n) {
  extern __shared__ float tree[];
  __shared__ float total;
  const int t = threadIdx.x;
#ifdef BUG_EARLY_RETURN
  if (t >= n) return;
#endif
  // Twice, so that the total is cleared again while slow threads may still read it.
  for (int round = 0; round < 2; ++round) {
    tree[t] = t < n ? input[round * n + t] : 0.f;
    if (t == 0) total = 0;
    __syncthreads();
    for (int step = blockDim.x / 2; step > 0; step /= 2) {
      if (t < step) tree[t] += tree[t + step];
#ifndef BUG_TREE
      __syncthreads();
#endif
    }
#ifdef BUG_TWO_BARRIERS
    if (t == 0) {
      total += tree[0];
      __syncthreads();
    } else {
      __syncthreads();
    }
#else
    if (t == 0) total += tree[0];
#ifndef BUG_READ_TOO_EARLY
    __syncthreads();
#endif
#endif
    output[round * blockDim.x + t] = total;
#ifndef BUG_WRITE_TOO_EARLY
    __syncthreads();
#endif
  }
}

// Two barriers that only their order in the text tells apart: they are on one line.
#define EITHER_BARRIER(condition) \
  if (condition) {                \
    __syncthreads();              \
  } else {                        \
    __syncthreads();              \
  }
extern "C" __global__ void barriers_on_one_line(int* to) {
  EITHER_BARRIER(threadIdx.x < 7)
  to[threadIdx.x] = 1;
}

// The shuffle makes all threads read before one writes, which does not order their accesses. The
// writer is the first to read, because it is the last to come to the barrier.
extern "C" __global__ void write_after_reads(int* to) {
  __shared__ int value;
  if (threadIdx.x == 0) value = 3;
  __syncthreads();
  const int seen = value;
  __shfl_sync(0xffffffffu, seen, 0);
  if (threadIdx.x == 31) value = 4;
  to[threadIdx.x] = seen;
}

// The last thread takes its own addition for the last of all.
extern "C" __global__ void read_after_own_atomic(int* to, int* sum) {
  atomicAdd(sum, 1);
  if (threadIdx.x == blockDim.x - 1) to[0] = *sum;
}

// Counts keys in shared memory first.
extern "C" __global__ void histogram(int* counts, const int* keys, int n, int n_bins) {
  extern __shared__ int bins[];
  for (int b = threadIdx.x; b < n_bins; b += blockDim.x) bins[b] = 0;
#ifndef BUG_NOT_CLEARED
  __syncthreads();
#endif
  const int stride = gridDim.x * blockDim.x;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
    atomicAdd(&bins[keys[i]], 1);
  }
  __syncthreads();
  for (int b = threadIdx.x; b < n_bins; b += blockDim.x) {
    if (bins[b]) atomicAdd(&counts[b], bins[b]);
  }
}

// Neighbours share a 4-byte word, which is no race.
extern "C" __global__ void half_words(unsigned short* to, const unsigned short* from) {
  __shared__ unsigned short staged[64];
  staged[threadIdx.x] = from[threadIdx.x];
  to[threadIdx.x] = staged[threadIdx.x];
}

// So do single bytes.
extern "C" __global__ void bytes(unsigned char* to) { to[threadIdx.x] = threadIdx.x; }

extern "C" __global__ void barrier_against_warp(int* to) {
  if (threadIdx.x < 16) {
    __syncthreads();
  } else {
    __syncwarp();
  }
  to[threadIdx.x] = 1;
}

extern "C" __global__ void endless(int* counter) {
  while (atomicAdd(counter, 1) >= 0) {
  }
}

// Touches no memory, so that only the clock can stop it.
extern "C" __global__ void endless_arithmetic(unsigned* to, unsigned seed) {
  volatile unsigned x = seed;
  while (x != 0) x = x * 2 | 1;
  to[0] = x;
}

extern "C" __global__ void trap(int* to) {
  to[0] = 1;
  __trap();
}

// Another warp waits for a flag: progress without a barrier.
extern "C" __global__ void spin(volatile int* flag, int* to) {
  if (threadIdx.x == 0) {
    while (*flag == 0) {
    }
    to[0] = 7;
  } else if (threadIdx.x == 40) {
    *flag = 1;
  }
}
