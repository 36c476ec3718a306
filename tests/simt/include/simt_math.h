// The device functions that NVRTC knows without an include and the host compiler does not.
#pragma once
#include <math.h>

#include <cmath>
#include <cstring>  // not used here: kernels' portable headers do, and find it precompiled
#include <type_traits>

#include "simt_warp.h"

SIMT_FN int __popc(unsigned x) { return __builtin_popcount(x); }
SIMT_FN int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
SIMT_FN int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
SIMT_FN int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
SIMT_FN int __ffs(int x) { return __builtin_ffs(x); }
SIMT_FN int __ffsll(long long x) { return __builtin_ffsll(x); }

SIMT_FN int __float_as_int(float x) { return simt::unbits<int>(simt::bits(x)); }
SIMT_FN unsigned __float_as_uint(float x) { return simt::unbits<unsigned>(simt::bits(x)); }
SIMT_FN float __int_as_float(int x) { return simt::unbits<float>(simt::bits(x)); }
SIMT_FN float __uint_as_float(unsigned x) { return simt::unbits<float>(simt::bits(x)); }
SIMT_FN long long __double_as_longlong(double x) { return simt::unbits<long long>(simt::bits(x)); }
SIMT_FN double __longlong_as_double(long long x) { return simt::unbits<double>(simt::bits(x)); }

SIMT_FN float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
SIMT_FN float __fadd_rn(float a, float b) { return a + b; }
SIMT_FN float __fmul_rn(float a, float b) { return a * b; }
SIMT_FN float __fdividef(float a, float b) { return a / b; }
SIMT_FN float rsqrtf(float x) { return 1.0f / sqrtf(x); }
SIMT_FN double rsqrt(double x) { return 1.0 / ::sqrt(x); }

// The C library declares functions of these names itself, so macros stand in front of them.
// __expf is a multiplication and a base-2 exponential, as on the device.
SIMT_FN float simt_expf(float x) { return exp2f(x * 1.44269504f); }
#define __expf simt_expf
SIMT_FN float simt_logf(float x) { return logf(x); }
#define __logf simt_logf

#define SIMT_ARITHMETIC(A, B, C)                                           \
  template <typename A, typename B, typename C = std::common_type_t<A, B>, \
            typename = std::enable_if_t<std::is_arithmetic_v<A> && std::is_arithmetic_v<B>>>
SIMT_ARITHMETIC(A, B, C) SIMT_FN C min(A a, B b) {
  if constexpr (std::is_floating_point_v<C>) return std::fmin((C)a, (C)b);
  return (C)b < (C)a ? (C)b : (C)a;
}
SIMT_ARITHMETIC(A, B, C) SIMT_FN C max(A a, B b) {
  if constexpr (std::is_floating_point_v<C>) return std::fmax((C)a, (C)b);
  return (C)b > (C)a ? (C)b : (C)a;
}
#undef SIMT_ARITHMETIC

using std::isfinite;
using std::isinf;
using std::isnan;
using std::signbit;
