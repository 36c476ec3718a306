// What the host kernels of edge_softmax are given; formulas are in kernels/edge_softmax.cu.
#pragma once
#include "isa.h"
#include "rows.h"

namespace edgegrad {

struct EdgeSoftmax {
  // Edges are rows of n_heads values.
  struct Problem {
    DType dtype;
    bool wide;  // 64-bit ids
    std::int64_t n_rows, n_heads;
    const void* offsets;
    const void* order;  // CSC position of each edge; null: they are in CSC order
  };

  void (*forward)(const Problem&, const Rows& output, const Rows& logits, const Pieces&);
  void (*backward)(const Problem&, const Rows& grad_logits, const Rows& grad_output,
                   const Rows& output, const Pieces&);
};

EG_DECLARE_FAMILY(EdgeSoftmax, edge_softmax)

}  // namespace edgegrad
