// A softmax that is taken in edge by edge, or in parts that are merged: sums of values go along.
#pragma once
#include "common/softmax.h"

namespace edgegrad {

struct ScalarExp {
  template <typename A> EG_HD static A of(A x) { return exp_of(x); }
};

// exp(x - max), and 0 for a masked logit even where all of them are masked.
template <typename A> EG_HD A softmax_term(A x, A max) {
  return x == minus_infinity<A>() ? A(0) : exp_of(x - max);
}

template <typename A> struct Softmax {
  A max = minus_infinity<A>();
  A sum = A(0);  // of exp(x - max); a NaN among the logits is only in here

  // Takes in the pair of other edges and returns what each side's values are multiplied by.
  struct Scales {
    A mine, others;
  };
  EG_HD Scales merge(Softmax other) {
    const A top = other.max > max ? other.max : max;
    const Scales scales{softmax_term(max, top), softmax_term(other.max, top)};
    sum = sum * scales.mine + other.sum * scales.others;
    max = top;
    return scales;
  }
  // 1 / sum; 0 where every edge is masked, or there is none.
  EG_HD A inverse() const { return sum == A(0) ? A(0) : A(1) / sum; }
};

}  // namespace edgegrad
