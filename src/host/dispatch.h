// From run-time types to the kernels compiled for them. Included only by files compiled per
// instruction set.
#pragma once
#include "common/half.h"
#include "dtype.h"

namespace edgegrad::EG_ISA {

// Calls `call` with Kernels<T, I>{}, T the feature type and I that of ids (64 bits if `wide`).
template <template <typename, typename> class Kernels, typename Call>
void with_types(DType dtype, bool wide, const Call& call) {
  const auto with_index = [&](auto feature) {
    using T = decltype(feature);
    if (wide) {
      call(Kernels<T, std::int64_t>{});
    } else {
      call(Kernels<T, std::int32_t>{});
    }
  };
  switch (dtype) {
    case DType::float16:
      return with_index(half_t{});
    case DType::bfloat16:
      return with_index(bfloat16_t{});
    case DType::float32:
      return with_index(float{});
    default:
      return with_index(double{});
  }
}

}  // namespace edgegrad::EG_ISA
