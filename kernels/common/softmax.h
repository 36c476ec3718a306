// Softmax over a destination's edges, kept as its largest logit and the sum of exponentials beside
// that: two numbers from which every coefficient can be made again, and which merge.
#pragma once
#include "common/half.h"

#if !defined(__CUDACC__)
#include <cmath>
#endif

namespace edgegrad {

template <typename A> EG_HD A minus_infinity() { return A(bit_cast<float>(0xff800000u)); }

struct ScalarExp {
  template <typename A> EG_HD static A of(A x) {
#if defined(__CUDACC__)
    return exp(x);
#else
    return std::exp(x);
#endif
  }
};

// exp(x - max), and 0 for a masked logit even where all of them are masked.
template <typename Exp, typename A> EG_HD A softmax_term(A x, A max) {
  return x == minus_infinity<A>() ? A(0) : Exp::of(x - max);
}

template <typename A> struct Softmax {
  A max = minus_infinity<A>();
  A sum = A(0);

  // Takes in the pair of other edges and returns what each side's sums are multiplied by.
  struct Scales {
    A mine, others;
  };
  EG_HD Scales merge(Softmax other) {
    const A top = other.max > max ? other.max : max;
    const Scales scales{softmax_term<ScalarExp>(max, top), softmax_term<ScalarExp>(other.max, top)};
    sum = sum * scales.mine + other.sum * scales.others;
    max = top;
    return scales;
  }
  // 1 / sum; 0 where every edge is masked, or there is none.
  EG_HD A inverse() const { return sum == A(0) ? A(0) : A(1) / sum; }
};

}  // namespace edgegrad
