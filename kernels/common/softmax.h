// Softmax of a set taken apart: the greatest logit of a part, and its exponentials summed.
#pragma once
#include "common/half.h"

namespace edgegrad {

#if defined(__CUDACC__)
EG_HD float exp_of(float x) { return expf(x); }
EG_HD double exp_of(double x) { return exp(x); }
#else
EG_HD float exp_of(float x) { return __builtin_expf(x); }
EG_HD double exp_of(double x) { return __builtin_exp(x); }
#endif

template <typename A> EG_HD A minus_infinity() {
  return static_cast<A>(bit_cast<float>(0xff800000u));
}

// The greater of two, or NaN if there is one.
template <typename A> EG_HD A greater(A a, A b) { return b > a || b != b ? b : a; }

// What is subtracted from logits whose greatest is `max`. Where all are -inf there is nothing to
// bring into range: their exponentials are 0, and 0 / 0 tells so.
template <typename A> EG_HD A shift_of(A max) { return max == minus_infinity<A>() ? A(0) : max; }

template <typename A> struct SoftmaxPart {
  A max, sum;  // sum of exp(x - shift_of(max))
};

template <typename A> EG_HD SoftmaxPart<A> merge(SoftmaxPart<A> a, SoftmaxPart<A> b) {
  const A max = greater(a.max, b.max), shift = shift_of(max);
  return {max, a.sum * exp_of(a.max - shift) + b.sum * exp_of(b.max - shift)};
}

// Parts of a plain sum, beside which its total is merged in the same way.
template <typename A> struct SumPart {
  A sum;
};

template <typename A> EG_HD SumPart<A> merge(SumPart<A> a, SumPart<A> b) { return {a.sum + b.sum}; }

}  // namespace edgegrad
