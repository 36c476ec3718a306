// Activations of attention logits, value and derivative together.
//
// One formula for scalars and for the host's packs: `V` is either, `Exp::of(V)` its exponential.
#pragma once
#include "common/portable.h"

namespace edgegrad {

// Numbered like ACTIVATIONS in operators/attention.py.
enum Activation : int { kLinear, kRelu, kSigmoid, kTanh, kElu, kScalar, kLeakyRelu };

template <typename V> struct Activated {
  V value, slope;
};

// At 0 the slope of relu is 0, of leaky_relu alpha, of elu 1. A NaN stays one.
template <typename Exp, typename V, typename A>
EG_HD Activated<V> activate(int activation, V z, A alpha) {
  const V zero = V{}, one = zero + A(1);
  switch (activation) {
    case kRelu:
      return {z < zero ? zero : z, z > zero ? one : zero};
    case kSigmoid: {
      const V s = one / (one + Exp::of(-z));
      return {s, s * (one - s)};
    }
    case kTanh: {
      const V t = one - A(2) / (Exp::of(z + z) + one);
      return {t, one - t * t};
    }
    case kElu: {
      const V e = Exp::of(z > zero ? zero : z);
      return {z > zero ? z : e - one, e};
    }
    case kScalar:
      return {alpha * z, zero + alpha};
    case kLeakyRelu:
      return {z > zero ? z : alpha * z, z > zero ? one : zero + alpha};
    default:
      return {z, one};
  }
}

}  // namespace edgegrad
