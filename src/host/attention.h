// What the host kernels of attention are given; formulas are in kernels/common/attention.cuh.
#pragma once
#include "common/dropout.h"
#include "common/ids.h"
#include "isa.h"
#include "rows.h"

namespace edgegrad {

// Arrays that may be absent have no data.
struct Attention {
  struct Array {
    Rows rows;
    DType dtype = DType::other;

    explicit operator bool() const { return rows.data != nullptr; }
  };

  struct Problem {
    DType dtype;  // of features
    std::int64_t n_src, n_dst, n_edges;
    std::int64_t heads, dim, value_dim, edge_dim;  // widths of all heads together
    bool concat;
    int activation;
    double alpha;

    Rows src, dst, value, edge;
    Array weights, bias;
    Dropout dropout;
    Ids offsets, indices;
    Ids edge_ids;  // without data: edge ids are CSC positions
  };

  struct Forward {
    Rows output, stats;
    Array attention;
  };

  struct Backward {
    Array grad_src, grad_dst, grad_value, grad_weights, grad_edge, grad_bias;
    Rows grad_output, output, stats;
    Array grad_attention;
    // Destinations are the first sources: their gradient goes into grad_src.
    bool own;
    Ids rev_offsets, rev_dst, rev_position;
  };

  void (*forward)(const Problem&, const Forward&, const Pieces&);
  void (*backward)(const Problem&, const Backward&, const Pieces& by_dst, const Pieces& by_src);
};

EG_DECLARE_FAMILY(Attention, mha_gat)
EG_DECLARE_FAMILY(Attention, mha_gat_v2)
EG_DECLARE_FAMILY(Attention, mha_simple)

}  // namespace edgegrad
