// What sddmm makes of the two ends of an edge, and what its gradients are sums of.
// The numbers are those of OPS and TERMS in operators/sddmm.py.
#pragma once
#include "common/portable.h"

namespace edgegrad {

enum EdgeOp { kDot, kAdd, kSub, kMul, kDiv, kCopyLhs, kCopyRhs };

EG_HD bool reads_lhs(int op) { return op != kCopyRhs; }
EG_HD bool reads_rhs(int op) { return op != kCopyLhs; }

// V is an accumulator or a vector of them. A dot product is this product, summed.
template <typename V> EG_HD V edge_op(int op, V lhs, V rhs) {
  switch (op) {
    case kAdd:
      return lhs + rhs;
    case kSub:
      return lhs - rhs;
    case kDiv:
      return lhs / rhs;
    case kCopyLhs:
      return lhs;
    case kCopyRhs:
      return rhs;
    default:
      return lhs * rhs;
  }
}

// Derivatives by the end whose row is summed (`own`), given the other end of the edge.
enum EdgeTerm { kZero, kPlain, kMinus, kTimes, kOver, kQuotient };

EG_HD bool reads_other(int term) { return term >= kTimes; }
EG_HD bool reads_own(int term) { return term == kQuotient; }

template <typename V> EG_HD V edge_term(int term, V grad, V other, V own) {
  switch (term) {
    case kPlain:
      return grad;
    case kMinus:
      return -grad;
    case kTimes:
      return grad * other;
    case kOver:
      return grad / other;
    default:  // -g l / r^2, without the square that could overflow
      return -(grad / own) * (other / own);
  }
}

}  // namespace edgegrad
