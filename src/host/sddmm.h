// What the host kernels of sddmm are given; formulas are in kernels/sddmm.cu.
#pragma once
#include "isa.h"
#include "rows.h"

namespace edgegrad {

struct Sddmm {
  // Rows are n_heads x dim values; the edges of a dot product have n_heads.
  struct Problem {
    DType dtype;
    bool wide;  // 64-bit ids
    std::int64_t n_dst, n_edges, n_heads, dim;
    int op;  // EdgeOp
    Rows lhs, rhs, output;
    const void *offsets, *indices;
  };

  // The gradient of one side, whose rows are rows of a graph from it to the other side.
  struct Gradient {
    DType dtype;
    bool wide;
    std::int64_t n_rows, n_edges, width;
    std::int64_t per_head;  // channels that share an edge's gradient; 1 but for a dot product
    int term;               // EdgeTerm
    Rows result, grad_output, other, own;
    const void *offsets, *other_end;
    const void* position;  // of an edge in grad_output; null: where it is
  };

  void (*forward)(const Problem&);
  void (*gradient)(const Gradient&, const Pieces&);
};

EG_DECLARE_FAMILY(Sddmm, sddmm)

}  // namespace edgegrad
