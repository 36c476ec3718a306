// Blocks against each other: counters, scatters, and the block that finishes last.

extern "C" __global__ void count(int* counts, const long long* keys, long long n) {
  const long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
#ifdef BUG_NOT_ATOMIC
    counts[keys[i]] += 1;
#else
    atomicAdd(counts + keys[i], 1);
#endif
  }
}

// Float atomics: right, but in an order that depends on the schedule.
extern "C" __global__ void scatter_add(float* output, const float* values, const int* rows, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(output + rows[i], values[i]);
}

extern "C" __global__ void all_blocks_write(float* to) { to[threadIdx.x] = blockIdx.x; }

// Each block leaves a part; the last to finish adds the parts.
extern "C" __global__ void
last_block_sum(float* output, float* parts, unsigned* finished, const float* input, int n) {
  __shared__ float tree[64];
  __shared__ bool is_last;
  const int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  tree[t] = i < n ? input[i] : 0.f;
  __syncthreads();
  for (int step = 32; step > 0; step /= 2) {
    if (t < step) tree[t] += tree[t + step];
    __syncthreads();
  }
  if (t == 0) {
    parts[blockIdx.x] = tree[0];
#ifndef BUG_NO_FENCE
    __threadfence();
#endif
    is_last = atomicAdd(finished, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (!is_last || t != 0) return;
  float sum = 0;
  for (unsigned b = 0; b < gridDim.x; ++b) sum += parts[b];
  output[0] = sum;
}

// Block 0 publishes a value as it should; the others do not look at the flag.
extern "C" __global__ void publish(int* to, int* value, int* flag) {
  if (blockIdx.x == 0) {
    value[0] = 5;
    __threadfence();
    atomicExch(flag, 1);
  } else {
    to[blockIdx.x] = value[0];
  }
}

// Every thread leaves its number three times, in the order in which the threads come by.
extern "C" __global__ void append(int* log, int* length) {
  for (int i = 0; i < 3; ++i) log[atomicAdd(length, 1)] = blockIdx.x * blockDim.x + threadIdx.x;
}
