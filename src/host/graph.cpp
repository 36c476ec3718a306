// Validation, reverse graphs, groups by type and row pieces on the host. Every function is linear
// in the graph, writes arrays the caller allocated, and is stable: edges keep their order.
#include "graph.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "parallel.h"

namespace edgegrad {
namespace {

using i64 = std::int64_t;

template <typename F> auto with_ids(const ArrayView& ids, F&& call) {
  return ids.dtype == DType::int64 ? call(ids.as<i64>()) : call(ids.as<std::int32_t>());
}

// The first position i in [0, n) for which bad(i), or -1. Chunks are tested in parallel and each
// stops at its first.
template <typename Bad> i64 first_bad(i64 n, const Bad& bad) {
  constexpr i64 kChunk = 1 << 16;
  const i64 chunks = (n + kChunk - 1) / kChunk;
  std::vector<i64> found(static_cast<std::size_t>(chunks), -1);
  parallel_for(chunks, num_threads(), [&](i64 chunk, int) {
    const i64 begin = chunk * kChunk, end = std::min(n, begin + kChunk);
    bool any = false;  // a loop without an exit is vectorised
    for (i64 i = begin; i < end; ++i) any |= bad(i);
    for (i64 i = begin; any && i < end; ++i)
      if (bad(i)) {
        found[static_cast<std::size_t>(chunk)] = i;
        break;
      }
  });
  for (i64 i : found)
    if (i >= 0) return i;
  return -1;
}

// What a check found: the first position and the value there; position -1 when all is well.
using Found = std::tuple<i64, i64>;

Found not_in_range(const ArrayView& ids, i64 first, i64 limit) {
  return with_ids(ids, [&](const auto* v) -> Found {
    const i64 i = first_bad(ids.size(), [&](i64 e) { return v[e] < first || i64(v[e]) >= limit; });
    return {i, i < 0 ? 0 : i64(v[i])};
  });
}

Found out_of_range(const ArrayView& ids, i64 limit) { return not_in_range(ids, 0, limit); }

Found not_monotone(const ArrayView& offsets) {
  return with_ids(offsets, [&](const auto* v) -> Found {
    const i64 i = first_bad(offsets.size() - 1, [&](i64 r) { return v[r + 1] < v[r]; });
    return {i < 0 ? -1 : i + 1, i < 0 ? 0 : i64(v[i + 1])};
  });
}

// The first position whose value has come before; values are known to be in range.
Found repeated(const ArrayView& ids) {
  return with_ids(ids, [&](const auto* v) -> Found {
    std::vector<bool> seen(static_cast<std::size_t>(ids.size()));
    for (i64 i = 0; i < ids.size(); ++i) {
      if (seen[static_cast<std::size_t>(v[i])]) return {i, i64(v[i])};
      seen[static_cast<std::size_t>(v[i])] = true;
    }
    return {-1, 0};
  });
}

i64 max_degree(const ArrayView& offsets) {
  return with_ids(offsets, [&](const auto* v) {
    i64 most = 0;
    for (i64 r = 0; r + 1 < offsets.size(); ++r) most = std::max(most, i64(v[r + 1] - v[r]));
    return most;
  });
}

// Stable counting sort of positions by key: offsets over keys, and the positions in key order.
template <typename K, typename I> void
count_sort(const K* keys, i64 n, i64 n_keys, I* offsets, I* order) {
  std::fill(offsets, offsets + n_keys + 1, I(0));
  for (i64 i = 0; i < n; ++i) ++offsets[keys[i] + 1];
  for (i64 k = 0; k < n_keys; ++k) offsets[k + 1] += offsets[k];
  // offsets[k] walks to the end of its key while placing; shifting restores the starts.
  for (i64 i = 0; i < n; ++i) order[offsets[keys[i]]++] = static_cast<I>(i);
  for (i64 k = n_keys; k > 0; --k) offsets[k] = offsets[k - 1];
  offsets[0] = 0;
}

void sort_by_key(ArrayView& offsets, ArrayView& order, const ArrayView& keys) {
  with_ids(keys, [&](const auto* k) {
    with_ids(order, [&](auto* o) {
      using I = std::remove_pointer_t<decltype(o)>;
      count_sort(k, keys.size(), offsets.size() - 1, offsets.as<I>(), o);
    });
  });
}

// destination[e] of every CSC position
void expand_rows(ArrayView& row_of, const ArrayView& offsets) {
  with_ids(offsets, [&](const auto* v) {
    using I = std::remove_const_t<std::remove_pointer_t<decltype(v)>>;
    for (i64 r = 0; r + 1 < offsets.size(); ++r)
      std::fill(row_of.as<I>() + v[r], row_of.as<I>() + v[r + 1], static_cast<I>(r));
  });
}

// to[i] = from[order[i]]
void take(ArrayView& to, const ArrayView& from, const ArrayView& order) {
  with_ids(from, [&](const auto* f) {
    with_ids(order, [&](const auto* o) {
      using V = std::remove_const_t<std::remove_pointer_t<decltype(f)>>;
      for (i64 i = 0; i < order.size(); ++i) to.as<V>()[i] = f[o[i]];
    });
  });
}

// Sorts each column's positions by edge type and returns the number of (destination, type) groups.
template <typename I>
i64 sort_columns(const I* offsets, i64 n_dst, const std::int32_t* types, I* order) {
  i64 groups = 0;
  for (i64 r = 0; r < n_dst; ++r) {
    I* begin = order + offsets[r];
    I* end = order + offsets[r + 1];
    for (I* at = begin; at < end; ++at) *at = static_cast<I>(at - order);
    std::stable_sort(begin, end, [&](I a, I b) { return types[a] < types[b]; });
    for (I* at = begin; at < end; ++at) groups += at == begin || types[*at] != types[*(at - 1)];
  }
  return groups;
}

i64 order_by_type(ArrayView& order, const ArrayView& offsets, const ArrayView& edge_types) {
  return with_ids(offsets, [&](const auto* v) {
    using I = std::remove_const_t<std::remove_pointer_t<decltype(v)>>;
    return sort_columns(v, offsets.size() - 1, edge_types.as<std::int32_t>(), order.as<I>());
  });
}

// Where each group of `order` begins (one more entry than groups), which destination * n_types +
// type it is, and for every CSC position the size of its group.
void type_groups(ArrayView& group_offsets, ArrayView& location, ArrayView& type_degree,
                 const ArrayView& order, const ArrayView& offsets, const ArrayView& edge_types,
                 i64 n_types) {
  with_ids(offsets, [&](const auto* v) {
    using I = std::remove_const_t<std::remove_pointer_t<decltype(v)>>;
    const I* o = order.as<I>();
    const std::int32_t* types = edge_types.as<std::int32_t>();
    I* starts = group_offsets.as<I>();
    i64 group = 0;
    for (i64 r = 0; r + 1 < offsets.size(); ++r)
      for (i64 begin = v[r], end; begin < v[r + 1]; begin = end, ++group) {
        for (end = begin + 1; end < v[r + 1] && types[o[end]] == types[o[begin]]; ++end) {
        }
        starts[group] = static_cast<I>(begin);
        location.as<i64>()[group] = r * n_types + types[o[begin]];
        for (i64 e = begin; e < end; ++e) type_degree.as<I>()[o[e]] = static_cast<I>(end - begin);
      }
    starts[group] = static_cast<I>(order.size());
  });
}

// How many pieces the rows longer than `limit` edges are cut into, and those pieces in row order.
i64 count_pieces(const ArrayView& offsets, i64 limit) {
  return with_ids(offsets, [&](const auto* v) {
    i64 n = 0;
    for (i64 r = 0; r + 1 < offsets.size(); ++r) {
      const i64 degree = v[r + 1] - v[r];
      if (degree > limit) n += (degree + limit - 1) / limit;
    }
    return n;
  });
}

void plan_pieces(ArrayView& row, ArrayView& begin, ArrayView& end, const ArrayView& offsets,
                 i64 limit) {
  with_ids(offsets, [&](const auto* v) {
    i64 n = 0;
    for (i64 r = 0; r + 1 < offsets.size(); ++r) {
      if (v[r + 1] - v[r] <= limit) continue;
      for (i64 e = v[r]; e < v[r + 1]; e += limit, ++n) {
        row.as<i64>()[n] = r;
        begin.as<i64>()[n] = e;
        end.as<i64>()[n] = std::min(i64(v[r + 1]), e + limit);
      }
    }
  });
}

}  // namespace

void bind_graph(nb::module_& m) {
  nb::class_<Graph>(m, "Graph", "The struct behind edgegrad's graph types.")
      .def(
          "__init__",
          [](Graph* self, nb::object offsets, nb::object indices, nb::object map_csc_to_coo,
             nb::object edge_types, nb::object src_node_types, nb::object dst_node_types,
             i64 n_src_nodes, i64 n_dst_nodes, i64 n_indices, i64 n_edge_types, i64 n_node_types) {
            new (self) Graph{std::move(offsets),
                             std::move(indices),
                             std::move(map_csc_to_coo),
                             std::move(edge_types),
                             std::move(src_node_types),
                             std::move(dst_node_types),
                             n_src_nodes,
                             n_dst_nodes,
                             n_indices,
                             n_edge_types,
                             n_node_types};
          },
          nb::arg("offsets"), nb::arg("indices"), nb::arg("map_csc_to_coo").none(),
          nb::arg("edge_types").none(), nb::arg("src_node_types").none(),
          nb::arg("dst_node_types").none(), nb::arg("n_src_nodes"), nb::arg("n_dst_nodes"),
          nb::arg("n_indices"), nb::arg("n_edge_types"), nb::arg("n_node_types"))
      .def_ro("offsets", &Graph::offsets,
              nb::for_getter(nb::sig("def offsets(self, /) -> ArrayView")),
              "(n_dst_nodes + 1,), where each destination's edges begin.")
      .def_ro("indices", &Graph::indices,
              nb::for_getter(nb::sig("def indices(self, /) -> ArrayView")),
              "(n_indices,), the source of each edge.")
      .def_ro("map_csc_to_coo", &Graph::map_csc_to_coo,
              nb::for_getter(nb::sig("def map_csc_to_coo(self, /) -> typing.Any")),
              "(n_indices,), edge ids, or None.")
      .def_ro("edge_types", &Graph::edge_types,
              nb::for_getter(nb::sig("def edge_types(self, /) -> typing.Any")),
              "(n_indices,), int32, CSC order, or None.")
      .def_ro("src_node_types", &Graph::src_node_types,
              nb::for_getter(nb::sig("def src_node_types(self, /) -> typing.Any")),
              "(n_src_nodes,) or None; kept, not used.")
      .def_ro("dst_node_types", &Graph::dst_node_types,
              nb::for_getter(nb::sig("def dst_node_types(self, /) -> typing.Any")),
              "(n_dst_nodes,) or None; kept, not used.")
      .def_ro("n_src_nodes", &Graph::n_src_nodes, "Number of source rows.")
      .def_ro("n_dst_nodes", &Graph::n_dst_nodes, "Number of destination rows.")
      .def_ro("n_indices", &Graph::n_indices, "Number of edges.")
      .def_ro("n_edge_types", &Graph::n_edge_types, "Number of edge types; 0 without types.")
      .def_ro("n_node_types", &Graph::n_node_types, "Number of node types; 0 without types.");
  m.def("not_in_range", &not_in_range);
  m.def("out_of_range", &out_of_range);
  m.def("not_monotone", &not_monotone);
  m.def("repeated", &repeated);
  m.def("max_degree", &max_degree);
  m.def("sort_by_key", &sort_by_key);
  m.def("expand_rows", &expand_rows);
  m.def("take", &take);
  m.def("order_by_type", &order_by_type);
  m.def("type_groups", &type_groups);
  m.def("count_pieces", &count_pieces);
  m.def("plan_pieces", &plan_pieces);
}

}  // namespace edgegrad
