// Dropout of attention coefficients, from a caller's mask or from counter-based random numbers:
// those depend on (seed, edge id, head) alone, so they need no memory and are everywhere the same.
#pragma once
#include "common/portable.h"

namespace edgegrad {

// The finaliser of SplitMix64 (Steele, Lea, Flood 2014): a bijection that spreads every bit.
EG_HD unsigned long long mix_bits(unsigned long long x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

constexpr unsigned long long kGolden = 0x9e3779b97f4a7c15ull;  // 2^64 over the golden ratio

// What the bits of an edge's heads are made from.
EG_HD unsigned long long edge_key(unsigned long long seed, index_t edge) {
  return mix_bits(mix_bits(seed + kGolden) ^ static_cast<unsigned long long>(edge));
}

// 32 uniform bits of one edge and head.
EG_HD unsigned random_bits(unsigned long long key, int head) {
  return static_cast<unsigned>(
      mix_bits(key + kGolden * (static_cast<unsigned long long>(head) + 1)) >> 32);
}

enum DropoutKind : int { kKeepAll, kMaskFloat, kMaskDouble, kMaskBool, kRandom };

struct Dropout {
  int kind;
  const void* mask;  // heads x edges, by edge id
  index_t mask_row;
  double scale;                        // of a kept coefficient: 1 / (1 - p), or 0 if p is 1
  unsigned long long seed, threshold;  // bits below the threshold, p * 2^32, are dropped

  template <typename A> EG_HD A random_factor(unsigned long long key, int head) const {
    return random_bits(key, head) < threshold ? A(0) : static_cast<A>(scale);
  }

  // What the coefficient of an edge and head is multiplied by.
  template <typename A> EG_HD A factor(index_t edge, int head) const {
    const index_t at = head * mask_row + edge;
    switch (kind) {
      case kMaskFloat:
        return static_cast<A>(static_cast<const float*>(mask)[at]);
      case kMaskDouble:
        return static_cast<A>(static_cast<const double*>(mask)[at]);
      case kMaskBool:
        return static_cast<const unsigned char*>(mask)[at] ? static_cast<A>(scale) : A(0);
      case kRandom:
        return random_factor<A>(edge_key(seed, edge), head);
      default:
        return A(1);
    }
  }
};

}  // namespace edgegrad
