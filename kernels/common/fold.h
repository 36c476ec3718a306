// A sum whose bits do not depend on the order of its terms (Rump, Ogita and Oishi 2008, "Accurate
// floating-point summation", ExtractVector).
//
// Adding a large power of two to a term and taking it off again leaves the part of the term above a
// fixed place. Such parts are multiples of one unit and few enough to be added without rounding, in
// any order. What is left of the terms is split once more; what is left then is less than 2^-60 of
// the largest term even for a million of them.
#pragma once
#include "common/half.h"

namespace edgegrad {

struct FoldedSum {
  double first = 0, second = 0;  // the powers of two; 0: add as it comes
  double high = 0, low = 0;

  // `largest` is the largest magnitude among the `count` terms.
  EG_HD FoldedSum(double largest, index_t count) {
    double room = 2;
    while (room < static_cast<double>(count) + 2) room *= 2;
    // The power of two at or below `largest`; 0 for subnormal numbers, whose sums are exact.
    const auto exponent = bit_cast<unsigned long long>(largest) & 0x7ff0000000000000ull;
    const double power = 2 * bit_cast<double>(exponent) * room;
    if (!(power < 1e300)) return;  // nothing finite to split by, or too close to overflow
    first = power;
    second = power * 0x1p-53 * room;
  }
  EG_HD void add(double x) {
    if (first == 0) {
      high += x;
      return;
    }
    const double above = (first + x) - first;
    high += above;
    low += (second + (x - above)) - second;
  }
  EG_HD double total() const { return high + low; }
};

}  // namespace edgegrad
