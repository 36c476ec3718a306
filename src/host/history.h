// What the host kernels of history are given; formulas are in kernels/history.cu.
#pragma once
#include "isa.h"
#include "rows.h"

namespace edgegrad {

struct History {
  struct Batch {
    DType store_dtype, rows_dtype;
    std::int64_t n, dim;
    Rows store, rows;  // rows: what is pulled or taken into, or what is pushed or added
    const void* ids;
    bool wide;  // 64-bit ids
    const std::int64_t*
        order;  // positions by id, equal ids in batch order; null: no id is repeated
  };

  struct Gather {
    double fill;      // what id -1 reads
    bool clear;       // leave zeros behind
    double max_norm;  // rows longer than this are scaled down to it; negative: none are
  };

  struct Scatter {
    enum class Of { last, sum, mean } of;  // what stands for the rows of one id
    double keep, factor;                   // store = keep * store + factor * row
    std::int64_t* age;                     // null: none
    std::int64_t step;
  };

  void (*gather)(const Batch&, const Gather&);
  void (*scatter)(const Batch&, const Scatter&);
};

EG_DECLARE_FAMILY(History, history)

}  // namespace edgegrad
