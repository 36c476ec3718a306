// From checked Python arguments to what host kernels are given.
#pragma once
#include "array.h"
#include "rows.h"

namespace edgegrad {

using View = const ArrayView&;

inline const ArrayView* view_or_null(nb::handle a) {
  return a.is_none() ? nullptr : &nb::cast<View>(a);
}

inline Rows rows_of(View a) {
  return {a.data, a.strides[a.ndim - 2], a.ndim == 3 ? a.strides[0] : 0};
}

// The arrays that plan_pieces() filled.
inline Pieces pieces_of(std::int64_t limit, View row, View begin, View end) {
  return {limit, row.size(), row.as<std::int64_t>(), begin.as<std::int64_t>(),
          end.as<std::int64_t>()};
}

}  // namespace edgegrad
