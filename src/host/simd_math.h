// Exponentials of packs; included only by files compiled per instruction set.
#pragma once
#include "simd.h"

namespace edgegrad::EG_ISA {

// e^x by 2^n e^r with n = round(x / ln 2): r is within ln(2) / 2, where a polynomial does. Exact at
// 0; within 2 units in the last place elsewhere; 0, infinity and NaN as by std::exp, but for
// results below the normal range, which are 0.
struct PackExp {
  static EG_INLINE Pack<float> of(Pack<float> x) {
    typedef std::int32_t Bits __attribute__((vector_size(kVectorBytes)));
    const Pack<float> high = Pack<float>{} + 88.7228394f, low = Pack<float>{} - 87.3365448f;
    const Pack<float> clamped = x > high ? high : x < low ? low : x;
    // Adding 1.5 * 2^23 rounds to an integer, which is left in the low bits.
    const Pack<float> shifted = clamped * 1.44269504f + 12582912.0f;
    const Pack<float> n = shifted - 12582912.0f;
    const Pack<float> r = (clamped - n * 0.693145752f) - n * 1.42860677e-6f;
    Pack<float> y = r * 1.9841270e-4f + 1.3888889e-3f;
    y = y * r + 8.3333333e-3f;
    y = y * r + 4.1666667e-2f;
    y = y * r + 1.6666667e-1f;
    y = y * r + 0.5f;
    y = (y * r) * r + r + 1.0f;
    // n may be 128, one more than an exponent can hold: 2^n as two factors.
    const Bits power = reinterpret_cast<Bits>(shifted) - 0x4b400000, half = power >> 1;
    y *= reinterpret_cast<Pack<float>>((half + 127) << 23);
    y *= reinterpret_cast<Pack<float>>((power - half + 127) << 23);
    const Pack<float> infinity = Pack<float>{} + __builtin_huge_valf();
    y = x > high ? infinity : x < low ? Pack<float>{} : y;
    return x == x ? y : x;
  }

  static EG_INLINE Pack<double> of(Pack<double> x) {
    typedef std::int64_t Bits __attribute__((vector_size(kVectorBytes)));
    const Pack<double> high = Pack<double>{} + 709.782712893384,
                       low = Pack<double>{} - 708.396418532264;
    const Pack<double> clamped = x > high ? high : x < low ? low : x;
    const Pack<double> shifted = clamped * 1.4426950408889634 + 6755399441055744.0;
    const Pack<double> n = shifted - 6755399441055744.0;
    const Pack<double> r = (clamped - n * 0.6931471803691238) - n * 1.9082149292705877e-10;
    constexpr double kInverseFactorials[] = {
        1.1470745597729725e-11, 1.6059043836821613e-10, 2.08767569878681e-9, 2.505210838544172e-8,
        2.755731922398589e-7,   2.7557319223985893e-6,  2.48015873015873e-5, 1.984126984126984e-4,
        1.3888888888888889e-3,  8.333333333333333e-3,   4.1666666666666664e-2,
        1.6666666666666666e-1,  0.5};
    Pack<double> y = Pack<double>{} + kInverseFactorials[0];
    for (int i = 1; i < 13; ++i) y = y * r + kInverseFactorials[i];
    y = (y * r) * r + r + 1.0;
    const Bits power = reinterpret_cast<Bits>(shifted) - 0x4338000000000000, half = power >> 1;
    y *= reinterpret_cast<Pack<double>>((half + 1023) << 52);
    y *= reinterpret_cast<Pack<double>>((power - half + 1023) << 52);
    const Pack<double> infinity = Pack<double>{} + __builtin_huge_val();
    y = x > high ? infinity : x < low ? Pack<double>{} : y;
    return x == x ? y : x;
  }
};

}  // namespace edgegrad::EG_ISA
