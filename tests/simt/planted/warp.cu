// Warp collectives, and the mistakes made with their masks.

// output[row] = sum of a row of 32 columns, one warp per row
extern "C" __global__ void warp_sum(float* output, const float* input, int n_rows) {
  const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (row >= n_rows) return;
#ifdef BUG_LANE_EXITS
  if (lane == 31) return;
#endif
  float sum = input[row * 32 + lane];
#ifdef BUG_LANE_GOES_ON
  if (lane < 31)
#endif
    for (int delta = 16; delta > 0; delta /= 2) sum += __shfl_down_sync(0xffffffffu, sum, delta);
#ifdef BUG_LANE_GOES_ON
  __syncwarp();
#endif
  if (lane == 0) output[row] = sum;
}

// Reverses the elements of each warp through shared memory.
extern "C" __global__ void warp_reverse(float* to, const float* from) {
  __shared__ float staged[4][32];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  staged[warp][lane] = from[threadIdx.x];
#ifdef BUG_SHUFFLE_IS_NO_FENCE
  const float other = __shfl_xor_sync(0xffffffffu, from[threadIdx.x], 1);
  to[threadIdx.x] = staged[warp][31 - lane] + 0 * other;
#else
#ifndef BUG_NO_SYNCWARP
  __syncwarp();
#endif
  to[threadIdx.x] = staged[warp][31 - lane];
#endif
}

extern "C" __global__ void not_in_own_mask(int* to) {
  to[threadIdx.x] = __shfl_sync(0x0000ffffu, int(threadIdx.x), 0);
}

extern "C" __global__ void bad_width(int* to) {
  to[threadIdx.x] = __shfl_sync(0xffffffffu, int(threadIdx.x), 0, 24);
}

extern "C" __global__ void collectives(const int* x, unsigned* to) {
  const int t = threadIdx.x, lane = t % 32;
  constexpr unsigned kAll = 0xffffffffu;
  unsigned* row = to + t;
  row[0 * 64] = __ballot_sync(kAll, x[t] > 0);
  row[1 * 64] = __shfl_sync(kAll, x[t], lane + 3, 8);
  row[2 * 64] = __shfl_up_sync(kAll, x[t], 2, 16);
  row[3 * 64] = __shfl_down_sync(kAll, x[t], 5);
  row[4 * 64] = __shfl_xor_sync(kAll, x[t], 9);
  row[5 * 64] = __any_sync(kAll, x[t] == 2) + 2 * __all_sync(kAll, x[t] < 3);
  // Disjoint groups that have diverged.
  row[6 * 64] = lane % 2 ? __ballot_sync(0xaaaaaaaau, 1) : __ballot_sync(0x55555555u, x[t] > 0);
}
