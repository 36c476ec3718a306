"""Mini-batches of a graph: parts of its nodes, and the bipartite graph that each part reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgegrad.errors import BackendError, wrong_index, wrong_option, wrong_type, wrong_value
from edgegrad.graph import Graph, make_bipartite_csc, make_bipartite_csc_hg
from edgegrad.graph.convert import to_numpy
from edgegrad.graph.make import count
from edgegrad.interop import view

METHODS = ("metis", "contiguous", "random")
NEIGHBOURS = ("fresh", "store")
Ids = NDArray[np.int64]


def partition(graph: Graph, n_parts: int, method: str = "metis", seed: int = 0) -> Ids:
    """Divide the destinations of a graph into parts of about equal size.

    Parameters
    ----------
    graph : csc or csc_hg graph
        Its edges count in both directions, parallel ones once, self loops not.
    n_parts : int
        At least 1.
    method : {"metis", "contiguous", "random"}
        METIS cuts few edges and needs the package pymetis; contiguous parts are runs of nodes;
        random ones are drawn by `seed`.
    seed : int
        For "metis" and "random".

    Returns
    -------
    NumPy array (n_dst_nodes), int64
        The part of each node.

    Raises
    ------
    ArgumentError
        If an argument is not as described.
    BackendError
        If pymetis is missing.
    """
    where = "partition"
    _check_graph(where, graph)
    if count(where, "n_parts", n_parts) == 0:
        raise wrong_value(where, "n_parts", "the value 0", "at least one part")
    if method not in METHODS:
        raise wrong_option(where, "method", method, " or ".join(map(repr, METHODS)))
    n = graph.n_dst_nodes
    if method == "metis":
        return _metis(graph, n_parts, count(where, "seed", seed, 2**31 - 1))
    parts = np.arange(n, dtype=np.int64) * n_parts // max(1, n)
    return np.random.default_rng(seed).permutation(parts) if method == "random" else parts


def _metis(graph: Graph, n_parts: int, seed: int) -> Ids:
    try:
        import pymetis
    except ImportError:
        raise BackendError(
            "partition: method='metis' needs pymetis: pip install 'edgegrad[partition]'"
        ) from None
    n = graph.n_dst_nodes
    if n_parts == 1 or n == 0:
        return np.zeros(n, np.int64)
    offsets, src = _numpy(graph.offsets), _numpy(graph.indices)
    dst = np.repeat(np.arange(n), np.diff(offsets))
    between = (src < n) & (src != dst)  # a source that is no destination is in no part
    src, dst = src[between].astype(np.int64), dst[between]
    pairs = np.sort(np.concatenate([src * n + dst, dst * n + src]))
    pairs = pairs[np.diff(pairs, prepend=-1) > 0]
    starts = np.searchsorted(pairs, np.arange(n + 1) * n)
    adjacency = pymetis.CSRAdjacency(starts, pairs % n)
    _, parts = pymetis.part_graph(n_parts, adjacency, options=pymetis.Options(seed=seed))
    return np.asarray(parts, np.int64)


@dataclass(frozen=True)
class Batch:
    """Some destinations of a graph with all edges that enter them.

    The sources of `graph` are `own`, in order, and then `neighbours`. Node and edge arrays of the
    whole graph are taken over by ``x[own]``, ``x[neighbours]`` and, in CSC order, ``w[positions]``.
    """

    graph: Graph  # bipartite_csc or bipartite_csc_hg, where the whole graph is
    own: Ids  # (n_own): the destinations, as they were given
    neighbours: Ids  # distinct rows to be read from a store, increasing
    positions: Ids  # (n_indices): where the batch's edges stand in the whole graph


def batches(graph: Graph, parts: Any, *, neighbours: str = "fresh") -> list[Batch]:
    """Cut a graph into the batches of an epoch.

    Parameters
    ----------
    graph : csc or csc_hg graph
        The whole graph.
    parts : array (n_dst_nodes), int32 or int64, or list of such arrays
        The part of each node, as `partition` gives it; or for each batch its destinations, in any
        order, with repetitions if need be.
    neighbours : {"fresh", "store"}
        Which sources of a batch are rows of `own`: all destinations of the batch (GNNAutoScale), or
        only a destination's own self loop, everything else being read from a store (Euler). An id
        that is repeated in `own` is read at its first position.

    Returns
    -------
    list of Batch
        Without parts that are empty.

    Raises
    ------
    ArgumentError
        If an argument is not as described; `IndexError` for a part or an id out of range.
    """
    where = "batches"
    _check_graph(where, graph)
    if neighbours not in NEIGHBOURS:
        raise wrong_option(where, "neighbours", neighbours, " or ".join(map(repr, NEIGHBOURS)))
    cut = _Cut(graph, neighbours == "fresh")
    return [cut.batch(own) for own in _destinations(where, graph.n_dst_nodes, parts) if len(own)]


def _destinations(where: str, n: int, parts: Any) -> Iterator[Ids]:
    if isinstance(parts, (list, tuple)):
        for i, own in enumerate(parts):
            yield _ids(where, f"parts[{i}]", own, n)
        return
    part_of = _ids(where, "parts", parts, np.iinfo(np.int64).max)
    if len(part_of) != n:
        raise wrong_value(where, "parts", f"shape {part_of.shape}", f"(n_dst_nodes={n})")
    order = np.argsort(part_of, kind="stable")
    yield from np.split(order, np.flatnonzero(np.diff(part_of[order])) + 1)


def _ids(where: str, name: str, array: Any, n: int) -> Ids:
    a = view(where, name, array)
    if a.dtype not in ("int32", "int64"):
        raise wrong_type(where, name, f"dtype {a.dtype}", "int32 or int64")
    if a.ndim != 1:
        raise wrong_value(where, name, f"shape {a.shape}", "one axis")
    ids = _numpy(a).astype(np.int64)
    bad = np.flatnonzero((ids < 0) | (ids >= n))
    if len(bad):
        has = f"the value {ids[bad[0]]}"
        raise wrong_index(where, f"{name}[{bad[0]}]", has, f"a number in [0, {n})")
    return ids


class _Cut:
    """The whole graph on the host, and where each of its nodes is in the batch at hand."""

    def __init__(self, graph: Graph, fresh: bool) -> None:
        self.graph, self.fresh = graph, fresh
        self.offsets, self.indices = _numpy(graph.offsets), _numpy(graph.indices)
        types = graph.edge_types
        self.types = None if types is None else _numpy(types)
        self.row_of = np.full(graph.n_src_nodes, -1, np.int64)  # -1 outside `batch`

    def batch(self, own: Ids) -> Batch:
        degree = self.offsets[own + 1] - self.offsets[own]
        offsets = np.concatenate([[0], np.cumsum(degree, dtype=np.int64)])
        shift = np.repeat(self.offsets[own] - offsets[:-1], degree)
        positions = np.arange(offsets[-1]) + shift
        sources = self.indices[positions].astype(np.int64)
        self.row_of[own[::-1]] = np.arange(len(own))[::-1]  # the first of an id is written last
        rows = self.row_of[sources]
        if not self.fresh:
            rows[sources != np.repeat(own, degree)] = -1
        outside = rows < 0
        neighbours, at = np.unique(sources[outside], return_inverse=True)
        rows[outside] = len(own) + at
        self.row_of[own] = -1
        graph = self._make(offsets, rows, len(own) + len(neighbours), positions)
        return Batch(graph, own, neighbours, positions)

    def _make(self, offsets: Ids, rows: Ids, n_src: int, positions: Ids) -> Graph:
        ids = self.graph.index_dtype
        arrays = (offsets.astype(ids), rows.astype(ids), n_src)
        if self.types is None:
            made = make_bipartite_csc(*arrays, validate=False)
        else:
            counts = (self.graph.n_node_types, self.graph.n_edge_types)
            made = make_bipartite_csc_hg(
                *arrays, *counts, None, None, self.types[positions], validate=False
            )
        return made.to(self.graph.device)


def _check_graph(where: str, graph: Any) -> None:
    if not isinstance(graph, Graph) or graph.kind not in ("csc", "csc_hg"):
        kinds = "csc_int32/int64 or csc_hg_int32/int64"
        raise wrong_type(where, "graph", f"type {type(graph).__name__}", kinds)


def _numpy(array: Any) -> np.ndarray:
    found = to_numpy(array)
    assert found is not None
    return found
