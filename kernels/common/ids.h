// Ids of either width, for kernels that read few of them: a switch at run time halves how much is
// compiled.
#pragma once
#include "common/portable.h"

namespace edgegrad {

struct Ids {
  const void* data;
  int wide;
  EG_HD index_t operator[](index_t i) const {
    return wide ? static_cast<const long long*>(data)[i] : static_cast<const int*>(data)[i];
  }
};

}  // namespace edgegrad
