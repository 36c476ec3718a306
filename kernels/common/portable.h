// What lets one header be compiled by NVRTC, by the host compiler and by the CPU runner.
#pragma once

#if defined(__CUDACC__)
#define EG_HD __host__ __device__ __forceinline__
#else
// Always inlined: an out-of-line copy compiled for one instruction set must not serve another.
#define EG_HD inline __attribute__((always_inline))
#endif

namespace edgegrad {

// Offsets into arrays are always this wide: row * dim overflows 32 bits on ordinary graphs.
using index_t = long long;

}  // namespace edgegrad
