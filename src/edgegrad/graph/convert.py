"""To and from other forms of a graph: edge lists, SciPy matrices, other devices."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from edgegrad import _host
from edgegrad.errors import wrong_index, wrong_option, wrong_type, wrong_value
from edgegrad.graph.make import (
    INT32_MAX,
    MOST_ROWS,
    count,
    element,
    id_array,
    make_bipartite_csc,
    make_bipartite_csc_hg,
    make_csc,
    make_csc_hg,
    promote,
    type_array,
)
from edgegrad.graph.types import ARRAYS, COUNTS, Graph
from edgegrad.interop import ArrayView


def from_coo(
    src: Any,
    dst: Any,
    n_src_nodes: int,
    n_dst_nodes: int | None = None,
    *,
    edge_types: Any = None,
    n_edge_types: int | None = None,
    bipartite: bool = False,
    validate: bool = True,
) -> Graph:
    """Make a graph of the edges ``src[k] -> dst[k]``, in any order.

    Parameters
    ----------
    src, dst : array (n_indices), int32 or int64
        Ends of each edge; edge id k is its position here. Duplicates and self loops are kept.
    n_src_nodes : int
        Number of sources, given and never inferred.
    n_dst_nodes : int or None
        Number of destinations; None means n_src_nodes.
    edge_types : array (n_indices), int32, or None
        Type of each edge in the order of `src`; makes a typed graph, and needs `n_edge_types`.
    bipartite : bool
        Whether the two sides are independent; otherwise destinations are the first sources.
    validate : bool
        False skips the check of the ids; ids out of range then have no defined behaviour.

    Returns
    -------
    Graph
        Sorted stably by destination, with `map_csc_to_coo` from CSC positions to edge ids. The key
        is the destination alone, so no product of sizes can overflow.

    Raises
    ------
    ArgumentError
        As `make_csc`; an id out of range is an `IndexError` that names its position here.
    """
    where = "from_coo"
    n_src = count(where, "n_src_nodes", n_src_nodes)
    n_dst = count(where, "n_dst_nodes", n_src if n_dst_nodes is None else n_dst_nodes, MOST_ROWS)
    sources = id_array(where, "src", src)
    targets = id_array(where, "dst", dst, size=len(sources))
    if targets.device != sources.device:
        raise wrong_value(where, "dst", f"device {targets.device}", f"{sources.device}, as `src`")
    types, n_types = None, 0
    if edge_types is not None:
        if n_edge_types is None:
            raise wrong_type(where, "n_edge_types", "type NoneType", "the number of edge types")
        types = type_array(where, "edge_types", edge_types, sources, len(sources))
        n_types = count(where, "n_edge_types", n_edge_types, INT32_MAX)
    elif n_edge_types is not None:
        expected = "an array, since `n_edge_types` is given"
        raise wrong_type(where, "edge_types", "type NoneType", expected)
    if validate:
        _check_range(where, "src", sources, n_src, "an id")
        _check_range(where, "dst", targets, n_dst, "an id")
        if types is not None:
            _check_range(where, "edge_types", types, n_types, "a type")
    wide = "int64" in (sources.dtype, targets.dtype) or len(sources) > INT32_MAX
    width = "int64" if wide else "int32"
    sort = _host_sort if sources.device == "cpu" else _cuda_sort
    offsets, order, taken = sort(promote(targets, width), n_dst, (promote(sources, width), types))
    # What was made of checked arrays needs no check.
    if types is None:
        if bipartite:
            return make_bipartite_csc(offsets, taken[0], n_src, order, validate=False)
        return make_csc(offsets, taken[0], order, n_src_nodes=n_src, validate=False)
    if bipartite:
        return make_bipartite_csc_hg(
            offsets, taken[0], n_src, 0, n_types, None, None, taken[1], order, validate=False
        )
    return make_csc_hg(
        offsets, taken[0], 0, n_types, None, taken[1], order, n_src_nodes=n_src, validate=False
    )


def _check_range(where: str, name: str, ids: ArrayView, limit: int, what: str) -> None:
    if ids.device == "cpu":
        position, value = _host.out_of_range(ids, limit)
    else:
        from edgegrad.backends import cuda

        with cuda.on(ids.device) as cp:
            a = cp.asarray(ids)
            bad = (a < 0) | (a >= limit)
            position = int(cp.argmax(bad)) if len(ids) and bool(bad.any()) else -1
            value = element(ids, position) if position >= 0 else 0
    if position >= 0:
        expected = f"{what} in [0, {limit})"
        raise wrong_index(where, f"{name}[{position}]", f"the value {value}", expected)


Sorted = tuple[ArrayView, ArrayView, list[Any]]


def _host_sort(keys: ArrayView, n: int, arrays: tuple[ArrayView | None, ...]) -> Sorted:
    """Offsets by key, the stable order, and the arrays in that order."""
    offsets = _host.view(np.empty(n + 1, dtype=keys.dtype))
    order = _host.view(np.empty(len(keys), dtype=keys.dtype))
    _host.sort_by_key(offsets, order, keys)
    taken: list[Any] = []
    for a in arrays:
        taken.append(None if a is None else _host.view(np.empty(len(a), dtype=a.dtype)))
        if a is not None:
            _host.take(taken[-1], a, order)
    return offsets, order, taken


def _cuda_sort(keys: ArrayView, n: int, arrays: tuple[ArrayView | None, ...]) -> Sorted:
    from edgegrad.backends import cuda

    with cuda.on(keys.device) as cp:
        k = cp.asarray(keys)
        order = cp.argsort(k, kind="stable").astype(k.dtype)
        offsets = cp.searchsorted(k[order], cp.arange(n + 1, dtype=k.dtype)).astype(k.dtype)
        taken = [None if a is None else cp.asarray(a)[order] for a in arrays]
        return _host.view(offsets), _host.view(order), taken


def from_scipy(matrix: Any, *, bipartite: bool | None = None) -> tuple[Graph, Any]:
    """Read a SciPy sparse matrix as destinations x sources, so that ``A @ x`` aggregates.

    Parameters
    ----------
    matrix : scipy.sparse matrix or array of any format, (n_dst_nodes, n_src_nodes)
        Duplicate entries stay apart; stored zeros stay edges.
    bipartite : bool or None
        Whether the sides are independent; None: unless the matrix is square.

    Returns
    -------
    graph : Graph
    values : array (n_indices)
        The matrix's values in CSC order.
    """
    where = "from_scipy"
    if not all(hasattr(matrix, name) for name in ("format", "tocoo", "shape", "nnz")):
        raise wrong_type(where, "matrix", f"type {type(matrix).__name__}", "a scipy.sparse matrix")
    if len(matrix.shape) != 2:
        raise wrong_value(where, "matrix", f"shape {matrix.shape}", "two axes")
    n_dst, n_src = (int(n) for n in matrix.shape)
    if bipartite is None:
        bipartite = n_dst != n_src
    if matrix.format == "csr":
        # Compressed rows of destinations x sources are what a graph here is: nothing is copied.
        if bipartite:
            graph = make_bipartite_csc(matrix.indptr, matrix.indices, n_src)
        else:
            graph = make_csc(matrix.indptr, matrix.indices, n_src_nodes=n_src)
        return graph, matrix.data
    coo = matrix.tocoo()
    ids = np.int32 if max(n_dst, n_src) < 2**31 else np.int64
    row, col = coo.row.astype(ids, copy=False), coo.col.astype(ids, copy=False)
    graph = from_coo(col, row, n_src, n_dst, bipartite=bipartite)
    return graph, coo.data[np.asarray(graph.map_csc_to_coo)]


def to_scipy(graph: Graph, values: Any = None) -> Any:
    """Return the graph as a `scipy.sparse.csr_array`, destinations x sources.

    `values` is an array (n_indices,) in CSC order, ones when None. Parallel edges stay separate
    entries of the result. The ids are copied: methods of SciPy as harmless as `max` and
    `count_nonzero` add up parallel edges in place first, which must not reach the graph.
    """
    import scipy.sparse

    if not isinstance(graph, Graph):
        raise wrong_type("to_scipy", "graph", f"type {type(graph).__name__}", "a graph")
    data = np.ones(graph.n_indices) if values is None else np.asarray(values)
    if data.shape != (graph.n_indices,):
        raise wrong_value("to_scipy", "values", f"shape {data.shape}", f"({graph.n_indices},)")
    parts = (data, np.array(to_numpy(graph.indices)), np.array(to_numpy(graph.offsets)))
    return scipy.sparse.csr_array(parts, shape=(graph.n_dst_nodes, graph.n_src_nodes))


def to_numpy(array: ArrayView | None) -> np.ndarray | None:
    """Return a NumPy array of the view's values; a copy only if it is on a GPU."""
    if array is None or array.device == "cpu":
        return None if array is None else np.asarray(array)
    from edgegrad.backends import cuda

    with cuda.on(array.device) as cp:
        return cp.asnumpy(cp.asarray(array))


def to_device(graph: Graph, device: str) -> Graph:
    """Return `graph` on `device`, itself if it is there."""
    if device == "cuda":
        device = "cuda:0"
    if device == graph.device:
        return graph
    if device != "cpu" and not re.fullmatch("cuda:[0-9]+", str(device)):
        raise wrong_option("to", "device", device, "'cpu', 'cuda' or 'cuda:<n>'")
    arrays = {name: to_numpy(getattr(graph, name)) for name in ARRAYS}
    if device != "cpu":
        from edgegrad.backends import cuda

        with cuda.on(device) as cp:
            arrays = {k: None if a is None else cp.asarray(a) for k, a in arrays.items()}
    views = {name: None if a is None else _host.view(a) for name, a in arrays.items()}
    return type(graph)(**views, **{name: getattr(graph, name) for name in COUNTS})
