// What the host kernels of agg_hg_basis are given; formulas are in kernels/agg_hg_basis.cu.
#pragma once
#include "isa.h"
#include "rows.h"

namespace edgegrad {

struct AggHgBasis {
  struct Problem {
    DType dtype;  // of all node arrays
    bool wide;    // 64-bit ids
    std::int64_t batch, n_src, n_dst, n_edges, n_types;
    std::int64_t dim;     // width of the input
    std::int64_t blocks;  // n_bases, or n_types without weights
    bool concat_own;

    Rows input, output;  // output: output_embedding or grad_output
    // n_types x blocks, accumulator type, C order; null without weights
    const void* weights;
    const void* edge_weight;  // null: 1
    DType edge_weight_dtype;

    const void *offsets, *indices;
    const std::int32_t* edge_types;
    const void* type_degree;  // in-edges of the edge's type at its destination; null: no norm
  };

  // Edges of each destination grouped by type; see type_groups() in graph.cpp.
  struct Groups {
    std::int64_t count;
    const void* offsets;
    const std::int64_t* location;  // destination * n_types + type
    const void* order;             // CSC position of each edge
  };

  struct Reverse {
    const void *offsets, *dst, *position;
  };

  void (*forward)(const Problem&, const Pieces&);
  void (*forward_by_type)(const Problem&, const Groups&, const Pieces&);
  void (*grad_input)(const Problem&, const Rows& grad_input, const Reverse&, const Pieces&);
  // grad_weights: n_types x blocks accumulators, or null; grad_edge_weight: n_edges, or null
  void (*grad_parameters)(const Problem&, void* grad_weights, void* grad_edge_weight);
};

EG_DECLARE_FAMILY(AggHgBasis, agg_hg_basis)

}  // namespace edgegrad
