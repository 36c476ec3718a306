// What the host kernels of per_edge are given; kernels/per_edge.cu has the formulas.
#pragma once
#include "edges.h"
#include "isa.h"

namespace edgegrad {

struct PerEdge {
  // A row for every edge, by edge id. Absent operands have null data.
  struct Expansion {
    DType dtype;
    bool wide;
    std::int64_t dim;
    Edges edges;
    Rows output;
    Rows row, source, edge;  // by the edge's row, by the row it reads, by edge id
    bool row_is_accumulator, source_is_accumulator;
    Divisor divide;          // of `row`
    Rows extrema;            // by row: only the columns the edge won
    Rows centre, deviation;  // by row, for the gradient of a variance; `edge` is then its value
    Rows subtrahend;         // by edge id, subtracted: those listed for the edge
    const void *list_offsets, *list;  // offsets null: one id per edge, or -1
  };

  // The gradient of the factor of every edge, for each head.
  struct FactorGradient {
    DType dtype;
    bool wide;
    std::int64_t batch, dim, heads;
    Edges edges;
    Rows grad, input;  // by row, by the row an edge reads
    Rows extrema;      // by row: only the columns the edge won
    Divisor divide;    // of the row
    Rows mean;         // by row, subtracted from what edges read
    Factor result;     // by position
  };

  void (*expand)(const Expansion&);
  void (*grad_factor)(const FactorGradient&);
};

EG_DECLARE_FAMILY(PerEdge, per_edge)

}  // namespace edgegrad
