// What the host kernels of gather_reduce are given; kernels/gather_reduce.cu has the formulas.
#pragma once
#include "edges.h"
#include "isa.h"

namespace edgegrad {

struct GatherReduce {
  enum class Reducer : std::uint8_t { sum, extremum, winner, squares, spread };

  struct Problem {
    Reducer reducer;
    DType dtype;  // T, of node and edge arrays
    bool wide;    // 64-bit ids
    std::int64_t batch, dim, heads;
    Edges edges;
    Rows input, output;
    bool output_is_accumulator;
    double sign;     // extremum: 1 for max, -1 for min
    Rows extrema;    // ids; extremum writes it by row, winner reads it by gathered row
    Factor weight;   // by position
    Divisor divide;  // each row's result
    Divisor gathered;
    bool root;    // square root of the result
    Start start;  // what a row's sum begins with
    // squares: centre by row. spread: centre and deviation (may be null) by gathered row, own by
    // row. Centres are accumulators.
    Rows centre, deviation, own;
  };

  void (*reduce)(const Problem&, const Pieces&);
};

EG_DECLARE_FAMILY(GatherReduce, gather_reduce)

}  // namespace edgegrad
