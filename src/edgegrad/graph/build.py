"""What operators derive from a graph: built once, natively on the host, by CuPy on a GPU.

Every sort is stable, so additions that follow these arrays have one order everywhere. Building on
a GPU synchronises its stream, once, since calls on other streams will read the result; it happens
in the first call that needs it (or in `build_reverse`), never again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from edgegrad import _host
from edgegrad.graph.make import MOST_ROWS, count
from edgegrad.graph.types import Graph
from edgegrad.interop import ArrayView


@dataclass(frozen=True)
class Reverse:
    """Edges grouped by source; inside a source they keep their CSC order."""

    offsets: ArrayView  # (n_src_nodes + 1)
    dst: ArrayView  # (n_indices), destination of each reverse edge
    position: ArrayView  # (n_indices), its CSC position


@dataclass(frozen=True)
class TypeGroups:
    """Edges of each destination grouped by type; inside a group they keep their CSC order."""

    offsets: ArrayView  # (n_groups + 1)
    location: ArrayView  # (n_groups), int64, destination * n_edge_types + type; increasing
    order: ArrayView  # (n_indices), CSC position
    type_degree: ArrayView  # (n_indices), CSC order: size of the group the edge is in


@dataclass(frozen=True)
class Pieces:
    """Rows longer than `limit` edges, cut into pieces of at most that many; int64."""

    limit: int
    row: ArrayView
    begin: ArrayView
    end: ArrayView
    first: ArrayView  # first piece of each long row, closed by the number of pieces


def max_degree(offsets: ArrayView) -> int:
    """Return the largest difference of neighbouring offsets."""
    return _host.max_degree(_to_host(offsets))


def reverse(graph: Graph, stream_id: int = 0) -> Reverse:
    """Return the reverse graph, building it on first need."""
    count("build_reverse", "n_src_nodes", graph.n_src_nodes, MOST_ROWS)
    build = _host_reverse if graph.on_host else _cuda_reverse
    return graph.cached("reverse", lambda: build(graph, stream_id))


def type_groups(graph: Graph, stream_id: int = 0) -> TypeGroups:
    """Return the edges of each destination by type, building the groups on first need."""
    build = _host_type_groups if graph.on_host else _cuda_type_groups
    return graph.cached("type_groups", lambda: build(graph, stream_id))


def pieces(graph: Graph, rows: str, offsets: ArrayView, limit: int, stream_id: int = 0) -> Pieces:
    """Return how the long rows of `offsets` (named `rows`) are cut, planning on first need."""
    return graph.cached(("pieces", rows, limit), lambda: plan_pieces(offsets, limit, stream_id))


def listed_by(ids: ArrayView, n: int, stream_id: int = 0) -> tuple[ArrayView, ArrayView]:
    """Return, for every id in [0, n), the positions at which `ids` has it; -1 is nobody's.

    The positions of id i are ``order[offsets[i] : offsets[i + 1]]``, in increasing order.
    """
    if ids.device == "cpu":
        offsets, order = _new(n + 2, ids.dtype), _new(len(ids), ids.dtype)
        _host.sort_by_key(offsets, order, _host.view(np.asarray(ids) + 1))
        return _host.view(np.asarray(offsets)[1:]), order
    from edgegrad.backends import cuda

    with cuda.on(ids.device, stream_id) as cp:
        a = cp.asarray(ids)
        order = cp.argsort(a, kind="stable").astype(a.dtype)
        offsets = cp.searchsorted(a[order], cp.arange(n + 1, dtype=a.dtype)).astype(a.dtype)
        return _host.view(offsets, stream_id), _host.view(order, stream_id)


def _host_reverse(graph: Graph, _: int) -> Reverse:
    n, edges, ids = graph.n_src_nodes, graph.n_indices, graph.index_dtype
    offsets, position = _new(n + 1, ids), _new(edges, ids)
    _host.sort_by_key(offsets, position, graph.indices)
    row_of, dst = _new(edges, ids), _new(edges, ids)
    _host.expand_rows(row_of, graph.offsets)
    _host.take(dst, row_of, position)
    return Reverse(offsets, dst, position)


def _cuda_reverse(graph: Graph, stream_id: int) -> Reverse:
    from edgegrad.backends import cuda

    with cuda.on(graph.device, stream_id) as cp:
        sources = cp.asarray(graph.indices)
        position = cp.argsort(sources, kind="stable").astype(sources.dtype)
        keys = cp.arange(graph.n_src_nodes + 1, dtype=sources.dtype)
        offsets = cp.searchsorted(sources[position], keys).astype(sources.dtype)
        dst = _cuda_rows(cp, graph)[position]
        return Reverse(*cuda.settled(cp, offsets, dst, position))


def _cuda_rows(cp: Any, graph: Graph) -> Any:
    """Destination of every CSC position, on the GPU."""
    offsets = cp.asarray(graph.offsets)
    edges = cp.arange(graph.n_indices, dtype=offsets.dtype)
    return cp.searchsorted(offsets[1:], edges, side="right").astype(offsets.dtype)


def _host_type_groups(graph: Graph, _: int) -> TypeGroups:
    edges, ids = graph.n_indices, graph.index_dtype
    order, type_degree = _new(edges, ids), _new(edges, ids)
    n = _host.order_by_type(order, graph.offsets, graph.edge_types)
    offsets, location = _new(n + 1, ids), _new(n, "int64")
    _host.type_groups(
        offsets, location, type_degree, order, graph.offsets, graph.edge_types, graph.n_edge_types
    )
    return TypeGroups(offsets, location, order, type_degree)


def _cuda_type_groups(graph: Graph, stream_id: int) -> TypeGroups:
    from edgegrad.backends import cuda

    with cuda.on(graph.device, stream_id) as cp:
        ids = np.dtype(graph.index_dtype)
        types, rows = cp.asarray(graph.edge_types), _cuda_rows(cp, graph)
        by_type = cp.argsort(types, kind="stable")
        order = by_type[cp.argsort(rows[by_type], kind="stable")]
        location = rows[order].astype(np.int64) * graph.n_edge_types + types[order]
        begins = cp.ones(graph.n_indices, dtype=np.bool_)
        begins[1:] = location[1:] != location[:-1]
        starts = cp.nonzero(begins)[0]
        offsets = cp.concatenate([starts, cp.full(1, graph.n_indices, dtype=starts.dtype)])
        type_degree = cp.empty(graph.n_indices, dtype=ids)
        type_degree[order] = cp.diff(offsets)[cp.cumsum(begins) - 1].astype(ids)
        arrays = (offsets.astype(ids), location[starts], order.astype(ids), type_degree)
        return TypeGroups(*cuda.settled(cp, *arrays))


def plan_pieces(offsets: ArrayView, limit: int, stream_id: int = 0) -> Pieces:
    """Cut long rows on the host: offsets are small beside edges, and one plan serves everyone."""
    on_host = _to_host(offsets)
    n = _host.count_pieces(on_host, limit)
    row, begin, end = (_new(n, "int64") for _ in range(3))
    _host.plan_pieces(row, begin, end, on_host, limit)
    starts = np.flatnonzero(np.diff(np.asarray(row), prepend=-1))
    first = _host.view(np.append(starts, n).astype(np.int64))
    arrays = (_to(a, offsets.device, stream_id) for a in (row, begin, end, first))
    return Pieces(limit, *arrays)


def _new(n: int, dtype: str) -> ArrayView:
    return _host.view(np.empty(n, dtype=dtype))


def _to_host(a: ArrayView) -> ArrayView:
    if a.device == "cpu":
        return a
    from edgegrad.backends import cuda

    with cuda.on(a.device) as cp:
        return _host.view(cp.asnumpy(cp.asarray(a)))


def _to(a: ArrayView, device: str, stream_id: int) -> ArrayView:
    if device == "cpu":
        return a
    from edgegrad.backends import cuda

    with cuda.on(device, stream_id) as cp:
        return cuda.settled(cp, cp.asarray(np.asarray(a)))[0]
