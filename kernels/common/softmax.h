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

struct ScalarExp {
  template <typename A> EG_HD static A of(A x) { return exp_of(x); }
};

template <typename A> EG_HD A minus_infinity() {
  return static_cast<A>(bit_cast<float>(0xff800000u));
}

// The greater of two, or NaN if there is one.
template <typename A> EG_HD A greater(A a, A b) { return b > a || b != b ? b : a; }

// What is subtracted from logits whose greatest is `max`. Where all are -inf there is nothing to
// bring into range: their exponentials are 0, and 0 / 0 tells so.
template <typename A> EG_HD A shift_of(A max) { return max == minus_infinity<A>() ? A(0) : max; }

// exp(x - max), the term of one logit; 0 for -inf, also where all of them are.
template <typename A> EG_HD A softmax_term(A x, A max) { return exp_of(x - shift_of(max)); }

template <typename A> struct SoftmaxPart {
  A max, sum;  // sum of exp(x - shift_of(max))
  EG_HD static SoftmaxPart none() { return {minus_infinity<A>(), A(0)}; }
  // 1 / sum; 0 where every logit is masked, or there is none.
  EG_HD A inverse() const { return sum == A(0) ? A(0) : A(1) / sum; }
};

// Two parts as one, and what sums of values that go along with each are multiplied by.
template <typename A> struct Joined {
  SoftmaxPart<A> part;
  A scale_a, scale_b;
};

template <typename A> EG_HD Joined<A> join(SoftmaxPart<A> a, SoftmaxPart<A> b) {
  const bool b_is_high = b.max > a.max || b.max != b.max;
  const SoftmaxPart<A> high = b_is_high ? b : a, low = b_is_high ? a : b;
  const A scale = softmax_term(low.max, high.max);
  return {
      {high.max, high.sum + low.sum * scale}, b_is_high ? scale : A(1), b_is_high ? A(1) : scale};
}

template <typename A> EG_HD SoftmaxPart<A> merge(SoftmaxPart<A> a, SoftmaxPart<A> b) {
  return join(a, b).part;
}

// Parts of a plain sum, beside which its total is merged in the same way.
template <typename A> struct SumPart {
  A sum;
  EG_HD static SumPart none() { return {A(0)}; }
};

template <typename A> EG_HD SumPart<A> merge(SumPart<A> a, SumPart<A> b) { return {a.sum + b.sum}; }

}  // namespace edgegrad
