// Teams of 1 to 32 neighbouring lanes of a warp (a power of two) that share one item.
#pragma once
#include "common/portable.h"

namespace edgegrad {

// The lanes of this thread's team, for the _sync intrinsics: teams of a warp may diverge.
__device__ __forceinline__ unsigned team_mask(int lanes) {
  const unsigned lane = (threadIdx.y * blockDim.x + threadIdx.x) & 31u;
  return lanes == 32 ? 0xffffffffu : ((1u << lanes) - 1u) << (lane & ~(lanes - 1u));
}

// Joins lane l with the lanes of the team that are l modulo `stride` (a power of two), in a fixed
// tree; valid in every lane.
template <typename A, typename Join>
__device__ __forceinline__ A team_join(A x, int lanes, int stride, unsigned mask,
                                       const Join& join) {
  for (int step = lanes / 2; step >= stride; step /= 2) x = join(x, __shfl_xor_sync(mask, x, step));
  return x;
}

// Sum over the team in a fixed tree; valid in every lane.
template <typename A> __device__ __forceinline__ A team_sum(A x, int lanes, unsigned mask) {
  for (int step = lanes / 2; step > 0; step /= 2) x += __shfl_xor_sync(mask, x, step);
  return x;
}

}  // namespace edgegrad
