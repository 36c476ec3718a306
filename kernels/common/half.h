// float16 and bfloat16 as plain 16-bit structs, and the accumulator that belongs to each type.
//
// Kernels only ever load a half, compute in float and store a half, so two conversions per type are
// all that is needed. Writing them here keeps cuda_fp16.h out: NVRTC then needs no toolkit headers.
#pragma once
#include "common/portable.h"

#if !defined(__CUDACC__)
#include <cstring>
#if defined(__F16C__)
#include <immintrin.h>
#endif
#endif

namespace edgegrad {

struct half_t {
  unsigned short bits;
};
struct bfloat16_t {
  unsigned short bits;
};

template <typename To, typename From> EG_HD To bit_cast(From from) {
  static_assert(sizeof(To) == sizeof(From), "bit_cast needs types of one size");
  To to;
#if defined(__CUDACC__)
  memcpy(&to, &from, sizeof(To));
#else
  std::memcpy(&to, &from, sizeof(To));
#endif
  return to;
}

EG_HD float to_float(bfloat16_t x) { return bit_cast<float>(static_cast<unsigned>(x.bits) << 16); }

// Round to nearest even; NaN stays a (quiet) NaN, which plain rounding could turn into infinity.
EG_HD bfloat16_t to_bfloat16(float x) {
  const unsigned u = bit_cast<unsigned>(x);
  const unsigned rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  const unsigned quiet = (u >> 16) | 0x40u;
  const bool is_nan = (u & 0x7fffffffu) > 0x7f800000u;
  return {static_cast<unsigned short>(is_nan ? quiet : rounded)};
}

#if defined(__CUDACC__) && !defined(EG_SIMT)

EG_HD float to_float(half_t x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
  return y;
}

EG_HD half_t to_half(float x) {
  half_t y;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
  return y;
}

#elif defined(__F16C__)

EG_HD float to_float(half_t x) { return _cvtsh_ss(x.bits); }
EG_HD half_t to_half(float x) {
  return {static_cast<unsigned short>(_cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT))};
}

#else

// Subnormal halves are multiples of 2^-24, which float represents exactly.
EG_HD float to_float(half_t x) {
  const unsigned sign = (x.bits & 0x8000u) << 16, exponent = (x.bits >> 10) & 31u;
  const unsigned mantissa = x.bits & 0x3ffu;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 5.9604644775390625e-8f;
    return bit_cast<float>(bit_cast<unsigned>(magnitude) | sign);
  }
  const unsigned wide = exponent == 31 ? 255u : exponent + 112u;
  return bit_cast<float>(sign | (wide << 23) | (mantissa << 13));
}

// Adding 0.5 (a float whose last bit weighs 2^-24) rounds a subnormal half in hardware.
EG_HD half_t to_half(float x) {
  const unsigned u = bit_cast<unsigned>(x), sign = (u >> 16) & 0x8000u, magnitude = u & 0x7fffffffu;
  unsigned bits;
  if (magnitude > 0x7f800000u) {
    bits = 0x7e00u | ((magnitude >> 13) & 0x3ffu);
  } else if (magnitude >= 0x47800000u) {
    bits = 0x7c00u;
  } else if (magnitude < 0x38800000u) {
    bits = bit_cast<unsigned>(bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
  } else {
    bits = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  }
  return {static_cast<unsigned short>(sign | bits)};
}

#endif

template <typename T> struct Accumulator {
  using type = float;
};
template <> struct Accumulator<double> {
  using type = double;
};
// Half types accumulate in float, the others in themselves.
template <typename T> using accum_t = typename Accumulator<T>::type;

EG_HD float widen(half_t x) { return to_float(x); }
EG_HD float widen(bfloat16_t x) { return to_float(x); }
EG_HD float widen(float x) { return x; }
EG_HD double widen(double x) { return x; }

// The one rounding of a result, at its store.
template <typename T> EG_HD T narrow(accum_t<T> x) { return x; }
template <> EG_HD half_t narrow<half_t>(float x) { return to_half(x); }
template <> EG_HD bfloat16_t narrow<bfloat16_t>(float x) { return to_bfloat16(x); }

}  // namespace edgegrad
