// Included by force in front of an untouched .cu file: makes CUDA C++ device code valid C++17.
#pragma once
#include "simt_abi.h"
#include "simt_math.h"
#include "simt_memory.h"
#include "simt_thunk.h"
#include "simt_warp.h"

#define __global__ __attribute__((noinline, noclone))
#define __device__
#define __host__
#define __constant__ static
#define __grid_constant__
#define __launch_bounds__(...)
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
// Works for local, template, union and `extern T s[]` forms alike, and marks the symbol in the
// object file as thread-local: that is how the runner finds every shared array and its size.
#define __shared__ thread_local

#define threadIdx (::simt_thread_index())
#define blockIdx (::simt_block_index())
#define blockDim (::simt_block_dim())
#define gridDim (::simt_grid_dim())
static constexpr int warpSize = 32;

#define EG_SIMT 1
// As under NVRTC; defined after the standard headers, which have their own idea of them.
#define __CUDACC_RTC__ 1
#ifndef __CUDA_ARCH__
#define __CUDA_ARCH__ 800
#endif
