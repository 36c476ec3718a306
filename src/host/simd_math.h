// Elementary functions of packs. Included only by files compiled per instruction set.
#pragma once
#include "simd.h"

namespace edgegrad::EG_ISA {

template <typename A> struct ExpOf;

template <> struct ExpOf<float> {
  static constexpr int kMantissa = 23, kTerms = 7;
  static constexpr float kRound = 12582912.0f;  // 1.5 * 2^23
  static constexpr float kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;
  static constexpr float kLeast = -87.33654f, kMost = 88.72283f;
};

template <> struct ExpOf<double> {
  static constexpr int kMantissa = 52, kTerms = 13;
  static constexpr double kRound = 6755399441055744.0;  // 1.5 * 2^52
  static constexpr double kLn2High = 6.93147180369123816490e-01;
  static constexpr double kLn2Low = 1.90821492927058770002e-10;
  static constexpr double kLeast = -708.39641853226408, kMost = 709.78271289338397;
};

// exp of every lane to about 1 ulp; results below the normal numbers are 0, above them infinity.
//
// x = n ln 2 + r with |r| <= ln 2 / 2, where kTerms of the Taylor series of exp r are exact to a
// fraction of an ulp; n is then added to the exponent.
template <typename A> EG_INLINE Pack<A> exp_pack(Pack<A> x) {
  using C = ExpOf<A>;
  using Bits = decltype(x < x);
  // Adding kRound rounds to an integer, which is then in the low bits.
  const Pack<A> rounded = x * A(1.44269504088896340736) + C::kRound;
  const Pack<A> n = rounded - C::kRound;
  const Pack<A> r = (x - n * C::kLn2High) - n * C::kLn2Low;
  A factorial = 1;
  A inverse[C::kTerms + 1];
  for (int k = 0; k <= C::kTerms; factorial *= A(++k)) inverse[k] = A(1) / factorial;
  Pack<A> p = Pack<A>{} + inverse[C::kTerms];
  for (int k = C::kTerms - 1; k >= 0; --k) p = p * r + inverse[k];
  p = reinterpret_cast<Pack<A>>(reinterpret_cast<Bits>(p) +
                                (reinterpret_cast<Bits>(rounded) << C::kMantissa));
  const Pack<A> zero = {}, infinity = zero + A(__builtin_huge_valf());
  return x > C::kMost ? infinity : x >= C::kLeast ? p : x != x ? x : zero;
}

}  // namespace edgegrad::EG_ISA
