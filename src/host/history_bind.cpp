// Python face of the host kernels of history. Arguments have been checked by operator.py; ids are
// checked here, before a row is changed.
#include "history.h"

#include <nanobind/stl/tuple.h>

#include <array>
#include <cstring>
#include <tuple>
#include <utility>
#include <vector>

#include "bind.h"

namespace edgegrad {
namespace {

using Positions = std::vector<std::int64_t>;

std::int64_t id_at(View ids, std::int64_t i) {
  return ids.dtype == DType::int64 ? ids.as<std::int64_t>()[i] : ids.as<std::int32_t>()[i];
}

// The first position whose id is neither -1 nor a row of the store; -1 if there is none.
std::int64_t out_of_range(View ids, std::int64_t n_rows) {
  for (std::int64_t i = 0, n = ids.shape[0]; i < n; ++i)
    if (const std::int64_t id = id_at(ids, i); id < -1 || id >= n_rows) return i;
  return -1;
}

// Positions by id, equal ids in batch order: a radix sort, a byte at a time. Empty if ids increase,
// since then none is repeated.
Positions by_id(View ids, std::int64_t n_rows) {
  const std::int64_t n = ids.shape[0];
  std::int64_t i = 1;
  while (i < n && id_at(ids, i - 1) < id_at(ids, i)) ++i;
  if (i >= n) return {};
  struct Key {
    std::int64_t id, position;
  };
  std::vector<Key> keys(static_cast<std::size_t>(n)), sorted(keys.size());
  for (i = 0; i < n; ++i) keys[i] = {id_at(ids, i) + 1, i};
  for (int shift = 0; n_rows >> shift != 0; shift += 8) {
    std::array<std::int64_t, 257> begin{};
    for (const Key& key : keys) ++begin[(key.id >> shift & 255) + 1];
    for (int b = 0; b < 256; ++b) begin[b + 1] += begin[b];
    for (const Key& key : keys) sorted[begin[key.id >> shift & 255]++] = key;
    keys.swap(sorted);
  }
  Positions order(keys.size());
  for (i = 0; i < n; ++i) order[i] = keys[i].position;
  return order;
}

Rows matrix(View a) { return {a.data, a.strides[0], 0}; }  // one axis: rows of one column

History::Batch batch(View store, View rows, View ids, const Positions& order) {
  const std::int64_t dim = store.ndim == 2 ? store.shape[1] : 1;
  return {store.dtype,
          rows.dtype,
          ids.shape[0],
          dim,
          matrix(store),
          matrix(rows),
          ids.data,
          ids.dtype == DType::int64,
          order.empty() ? nullptr : order.data()};
}

// What is wrong with a call, and at which position; for rows, also the earlier position of that id.
enum Rule { kNone, kIds, kRows };
using Fault = std::tuple<int, std::int64_t, std::int64_t>;

// The first position whose row differs from the one before it of the same id.
Fault differing(View rows, View ids, const Positions& order) {
  const std::int64_t item = item_size(rows.dtype), row_bytes = rows.strides[0] * item;
  const auto bytes = static_cast<std::size_t>((rows.ndim == 2 ? rows.shape[1] : 1) * item);
  Fault first{kNone, ids.shape[0], 0};
  for (std::size_t p = 1; p < order.size(); ++p) {
    const std::int64_t i = order[p], before = order[p - 1], id = id_at(ids, i);
    if (id < 0 || id != id_at(ids, before) || i > std::get<1>(first)) continue;
    if (std::memcmp(rows.as<char>() + i * row_bytes, rows.as<char>() + before * row_bytes, bytes))
      first = {kRows, i, before};
  }
  return first;
}

// Checks the ids of a call, and that `rows` (null: anything) are one where an id is; `order` is
// set.
Fault check(View ids, std::int64_t n_rows, const ArrayView* rows, Positions& order) {
  if (const auto i = out_of_range(ids, n_rows); i >= 0) return {kIds, i, 0};
  order = by_id(ids, n_rows);
  return rows == nullptr ? Fault{kNone, 0, 0} : differing(*rows, ids, order);
}

Fault check_alone(View ids, std::int64_t n_rows, nb::handle rows) {
  const ArrayView* compared = view_or_null(rows);
  const nb::gil_scoped_release release;
  Positions order;
  return check(ids, n_rows, compared, order);
}

Fault pull(View output, View store, View ids, double fill) {
  const nb::gil_scoped_release release;
  if (const auto i = out_of_range(ids, store.shape[0]); i >= 0) return {kIds, i, 0};
  history_kernels().gather(batch(store, output, ids, {}), {fill, false, -1});
  return {kNone, 0, 0};
}

Fault take(View output, View store, View ids, bool clear, double max_norm) {
  const nb::gil_scoped_release release;
  Positions order;
  const Fault fault = check(ids, store.shape[0], nullptr, order);
  if (std::get<0>(fault) == kNone)
    history_kernels().gather(batch(store, output, ids, order), {0, clear, max_norm});
  return fault;
}

// `of`: a History::Scatter::Of, or -1 to refuse rows of one id that differ.
Fault scatter(View store, View ids, View rows, int of, double keep, double factor, nb::handle age,
              std::int64_t step) {
  using Of = History::Scatter::Of;
  const ArrayView* ages = view_or_null(age);
  const nb::gil_scoped_release release;
  Positions order;
  const Fault fault = check(ids, store.shape[0], of < 0 ? &rows : nullptr, order);
  if (std::get<0>(fault) == kNone)
    history_kernels().scatter(batch(store, rows, ids, order),
                              {of < 0 ? Of::last : static_cast<Of>(of), keep, factor,
                               ages == nullptr ? nullptr : ages->as<std::int64_t>(), step});
  return fault;
}

Fault stale(View mask, View age, View ids, std::int64_t step, std::int64_t max_age) {
  const nb::gil_scoped_release release;
  if (const auto i = out_of_range(ids, age.shape[0]); i >= 0) return {kIds, i, 0};
  for (std::int64_t i = 0, n = ids.shape[0]; i < n; ++i) {
    const std::int64_t id = id_at(ids, i), pushed = id < 0 ? step : age.as<std::int64_t>()[id];
    mask.as<bool>()[i] = id >= 0 && (pushed < 0 || step - pushed > max_age);
  }
  return {kNone, 0, 0};
}

}  // namespace

void bind_history(nb::module_& m) {
  m.def("history_check", &check_alone, nb::arg("ids"), nb::arg("n_rows"), nb::arg("rows").none());
  m.def("history_pull", &pull, nb::arg("output"), nb::arg("store"), nb::arg("ids"),
        nb::arg("fill"));
  m.def("history_take", &take, nb::arg("output"), nb::arg("store"), nb::arg("ids"),
        nb::arg("clear"), nb::arg("max_norm"));
  m.def("history_scatter", &scatter, nb::arg("store"), nb::arg("ids"), nb::arg("rows"),
        nb::arg("of"), nb::arg("keep"), nb::arg("factor"), nb::arg("age").none(), nb::arg("step"));
  m.def("history_stale", &stale, nb::arg("mask"), nb::arg("age"), nb::arg("ids"), nb::arg("step"),
        nb::arg("max_age"));
}

}  // namespace edgegrad
