// From checked Python arguments to what host kernels are given.
#pragma once
#include "array.h"
#include "edges.h"

namespace edgegrad {

using View = const ArrayView&;

inline const ArrayView* view_or_null(nb::handle a) {
  return a.is_none() ? nullptr : &nb::cast<View>(a);
}

inline Rows rows_of(View a) {
  return {a.data, a.strides[a.ndim - 2], a.ndim == 3 ? a.strides[0] : 0};
}

inline const void* data_or_null(nb::handle a) {
  const ArrayView* view = view_or_null(a);
  return view == nullptr ? nullptr : view->data;
}

inline Rows rows_or_null(nb::handle a) { return a.is_none() ? Rows{} : rows_of(nb::cast<View>(a)); }

// A factor per edge, or one for each head side by side.
inline Factor factor_of(nb::handle a) {
  const ArrayView* view = view_or_null(a);
  if (view == nullptr) return {};
  return {view->data, view->dtype, view->strides[0]};
}

// Offsets, whose differences divide, or sums.
inline Divisor divisor_of(nb::handle a) {
  const ArrayView* view = view_or_null(a);
  if (view == nullptr) return {};
  const bool ids = view->dtype == DType::int32 || view->dtype == DType::int64;
  if (ids) return {view->data, nullptr, view->dtype};
  return {nullptr, view->data, view->dtype};
}

// The arrays that plan_pieces() filled.
inline Pieces pieces_of(std::int64_t limit, View row, View begin, View end) {
  return {limit, row.size(), row.as<std::int64_t>(), begin.as<std::int64_t>(),
          end.as<std::int64_t>()};
}

// Edges and the cut of their long rows, with the arrays behind them. Made once for a graph by
// edgegrad.operators.edges.
struct BoundEdges {
  nb::object offsets, ids, order, map, piece_row, piece_begin, piece_end;
  Edges edges;
  Pieces pieces;
};

}  // namespace edgegrad
