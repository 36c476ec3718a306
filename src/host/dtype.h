// Element types, numbered alike on every side of the native module.
#pragma once
#include <cstdint>

namespace edgegrad {

enum class DType : std::uint8_t {
  float16,
  bfloat16,
  float32,
  float64,
  int8,
  int16,
  int32,
  int64,
  uint8,
  uint16,
  uint32,
  uint64,
  boolean,
  complex64,
  complex128,
  other,
};

int item_size(DType dtype);

}  // namespace edgegrad
