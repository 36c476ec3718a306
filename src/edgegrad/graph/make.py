"""Factories of graph structs, and the one check of a graph's arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from edgegrad import _host
from edgegrad.errors import wrong_index, wrong_type, wrong_value
from edgegrad.graph.types import Graph, graph_type
from edgegrad.interop import ArrayView, view

INT32_MAX = 2**31 - 1
# Offsets have an entry per row: more rows than this are a mistake, not a graph.
MOST_ROWS = 2**40


def make_csc(
    offsets: Any,
    indices: Any,
    map_csc_to_coo: Any = None,
    *,
    n_src_nodes: int | None = None,
    validate: bool = True,
) -> Graph:
    """Make a homogeneous graph; its destinations are the first `n_dst_nodes` source rows.

    Parameters
    ----------
    offsets : array (n_dst_nodes + 1), int32 or int64
        Where each destination's edges begin, closed by the number of edges. Called indptr in
        SciPy, colptr in PyG.
    indices : array (n_indices), int32 or int64
        Source of each edge. The order inside a column is free; parallel edges and self loops count.
    map_csc_to_coo : array (n_indices), int32 or int64, or None
        Edge id (row in the caller's edge arrays) of each edge; a permutation. None: the position.
    n_src_nodes : int or None
        At least n_dst_nodes; None means n_dst_nodes.
    validate : bool
        False skips the check of the arrays' values; a wrong graph then has no defined behaviour.

    Returns
    -------
    csc_int32 or csc_int64
        int64 if any of the id arrays is; narrower ones are promoted, which copies them. Nothing
        else is copied, and the arrays are kept alive. On a GPU the check is one kernel and one
        read-back.

    Raises
    ------
    ArgumentError
        `TypeError` for dtypes, `ValueError` for shapes, layouts, devices and offsets, `IndexError`
        for an id out of range, with the first position and its value.
    """
    return _make("make_csc", "csc", offsets, indices, n_src_nodes, validate, map_=map_csc_to_coo)


def make_bipartite_csc(
    offsets: Any,
    indices: Any,
    n_src_nodes: int,
    map_csc_to_coo: Any = None,
    *,
    validate: bool = True,
) -> Graph:
    """Make a bipartite graph: sources and destinations are independent, in either size relation.

    Parameters and errors are those of `make_csc`; `n_src_nodes` must be given.
    """
    where = "make_bipartite_csc"
    return _make(
        where, "bipartite_csc", offsets, indices, n_src_nodes, validate, map_=map_csc_to_coo
    )


def make_csc_hg(
    offsets: Any,
    indices: Any,
    n_node_types: int,
    n_edge_types: int,
    node_types: Any,
    edge_types: Any,
    map_csc_to_coo: Any = None,
    *,
    n_src_nodes: int | None = None,
    validate: bool = True,
) -> Graph:
    """Make a graph with edge types; its destinations are the first `n_dst_nodes` source rows.

    Parameters beyond those of `make_csc`:

    Parameters
    ----------
    n_node_types, n_edge_types : int
        Numbers of types; types without nodes or edges are ordinary.
    node_types : array (n_src_nodes), int32, or None
        Kept, not used.
    edge_types : array (n_indices), int32
        Type of each edge, in CSC order, like `indices`.
    """
    return _make(
        "make_csc_hg",
        "csc_hg",
        offsets,
        indices,
        n_src_nodes,
        validate,
        map_=map_csc_to_coo,
        types=(n_node_types, n_edge_types, edge_types),
        node_types={"node_types": node_types},
    )


def make_bipartite_csc_hg(
    offsets: Any,
    indices: Any,
    n_src_nodes: int,
    n_node_types: int,
    n_edge_types: int,
    src_node_types: Any,
    dst_node_types: Any,
    edge_types: Any,
    map_csc_to_coo: Any = None,
    *,
    validate: bool = True,
) -> Graph:
    """Make a bipartite graph with edge types; see `make_bipartite_csc` and `make_csc_hg`.

    `src_node_types` has n_src_nodes entries, `dst_node_types` n_dst_nodes; both may be None.
    """
    return _make(
        "make_bipartite_csc_hg",
        "bipartite_csc_hg",
        offsets,
        indices,
        n_src_nodes,
        validate,
        map_=map_csc_to_coo,
        types=(n_node_types, n_edge_types, edge_types),
        node_types={"src_node_types": src_node_types, "dst_node_types": dst_node_types},
    )


def _make(
    where: str,
    kind: str,
    offsets: Any,
    indices: Any,
    n_src_nodes: int | None,
    validate: bool,
    *,
    map_: Any,
    types: tuple[int, int, Any] | None = None,
    node_types: dict[str, Any] | None = None,
) -> Graph:
    starts = id_array(where, "offsets", offsets)
    if len(starts) == 0:
        raise wrong_value(where, "offsets", "length 0", "n_dst_nodes + 1 entries, at least one")
    sources = id_array(where, "indices", indices, like=starts)
    n_dst, n_edges = len(starts) - 1, len(sources)
    one_sided = not kind.startswith("bipartite")
    n_src = n_dst if n_src_nodes is None and one_sided else n_src_nodes
    n_src = count(where, "n_src_nodes", n_src)
    if one_sided and n_src < n_dst:
        raise wrong_value(
            where,
            "n_src_nodes",
            f"the value {n_src}",
            f"at least n_dst_nodes={n_dst} (use make_bipartite_{kind} for independent sides)",
        )
    edge_map = None
    if map_ is not None:
        edge_map = id_array(where, "map_csc_to_coo", map_, like=starts, size=n_edges)
    n_node_types, n_edge_types, edge_types = 0, 0, None
    if types is not None:
        n_node_types = count(where, "n_node_types", types[0])
        n_edge_types = count(where, "n_edge_types", types[1], INT32_MAX)
        edge_types = type_array(where, "edge_types", types[2], starts, n_edges)
    nodes: dict[str, ArrayView | None] = {"src_node_types": None, "dst_node_types": None}
    for name, array in (node_types or {}).items():
        side = "dst_node_types" if name == "dst_node_types" else "src_node_types"
        size = n_dst if side == "dst_node_types" else n_src
        nodes[side] = None if array is None else type_array(where, name, array, starts, size)
    ids = [a for a in (starts, sources, edge_map) if a is not None]
    width = "int64" if any(a.dtype == "int64" for a in ids) else "int32"
    graph = graph_type(kind, width)(
        offsets=promote(starts, width),
        indices=promote(sources, width),
        map_csc_to_coo=None if edge_map is None else promote(edge_map, width),
        edge_types=edge_types,
        **nodes,
        n_src_nodes=n_src,
        n_dst_nodes=n_dst,
        n_indices=n_edges,
        n_edge_types=n_edge_types,
        n_node_types=n_node_types,
    )
    if validate:
        check_graph(where, graph)
    return graph


def count(where: str, name: str, value: Any, most: int = 2**63 - 1) -> int:
    """Check that an argument is a whole number in [0, most]."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise wrong_type(where, name, f"type {type(value).__name__}", "a whole number")
    if not 0 <= value <= most:
        raise wrong_value(where, name, f"the value {value}", f"a number in [0, {most}]")
    return int(value)


def id_array(
    where: str, name: str, array: Any, like: ArrayView | None = None, size: int | None = None
) -> ArrayView:
    """View a one-dimensional contiguous array of int32 or int64."""
    a = view(where, name, array)
    if a.dtype not in ("int32", "int64"):
        raise wrong_type(where, name, f"dtype {a.dtype}", "int32 or int64")
    return _one_axis(where, name, a, like, size)


def type_array(where: str, name: str, array: Any, like: ArrayView, size: int) -> ArrayView:
    """View a one-dimensional contiguous array of int32."""
    a = view(where, name, array)
    if a.dtype != "int32":
        raise wrong_type(where, name, f"dtype {a.dtype}", "int32")
    return _one_axis(where, name, a, like, size)


def _one_axis(
    where: str, name: str, a: ArrayView, like: ArrayView | None, size: int | None
) -> ArrayView:
    if a.ndim != 1 or (size is not None and len(a) != size):
        expected = "one axis" if size is None else f"({size},)"
        raise wrong_value(where, name, f"shape {a.shape}", expected)
    if not a.rows_contiguous:
        raise wrong_value(where, name, f"strides {a.strides}", "a contiguous array (stride 1)")
    if like is not None and a.device != like.device:
        raise wrong_value(where, name, f"device {a.device}", f"{like.device}, as `offsets`")
    return a


def promote(ids: ArrayView, width: str) -> ArrayView:
    """Return `ids` at the wider dtype; a copy only if its own is narrower."""
    if ids.dtype == width:
        return ids
    if ids.device == "cpu":
        return _host.view(np.asarray(ids).astype(width))
    from edgegrad.backends import cuda

    with cuda.on(ids.device) as cp:
        return _host.view(cp.asarray(ids).astype(width))


# The rules of kernels/graph.cu, in its order: argument, and what is expected there.
_RULES = (
    ("offsets", "0 at the start"),
    ("offsets", "n_indices={n_indices} at the end"),
    ("offsets", "offsets that do not decrease"),
    ("indices", "a source in [0, {n_src_nodes})"),
    ("edge_types", "a type in [0, {n_edge_types})"),
    ("map_csc_to_coo", "an edge id in [0, {n_indices})"),
    ("map_csc_to_coo", "every edge id once"),
)
_OFFSET_RULES = 3


def check_graph(where: str, graph: Graph) -> None:
    """Raise for the first rule that the graph's arrays break, naming position and value."""
    rule, position = _host_violation(graph) if graph.on_host else _cuda_violation(graph)
    if position < 0:
        return
    name, expected = _RULES[rule]
    value = element(getattr(graph, name), position)
    fault = wrong_value if rule < _OFFSET_RULES or rule == len(_RULES) - 1 else wrong_index
    raise fault(where, f"{name}[{position}]", f"the value {value}", expected.format(**graph.sizes))


def element(array: ArrayView, position: int) -> int:
    """Read one element, from wherever the array is."""
    if array.device == "cpu":
        return int(np.asarray(array)[position])
    from edgegrad.backends import cuda

    with cuda.on(array.device) as cp:
        return int(cp.asarray(array)[position])


def _host_violation(graph: Graph) -> tuple[int, int]:
    offsets = graph.offsets
    if element(offsets, 0) != 0:
        return 0, 0
    if element(offsets, graph.n_dst_nodes) != graph.n_indices:
        return 1, graph.n_dst_nodes
    checks = [
        (2, lambda: _host.not_monotone(offsets)),
        (3, lambda: _host.out_of_range(graph.indices, graph.n_src_nodes)),
    ]
    if graph.edge_types is not None:
        checks.append((4, lambda: _host.out_of_range(graph.edge_types, graph.n_edge_types)))
    if graph.map_csc_to_coo is not None:
        checks.append((5, lambda: _host.out_of_range(graph.map_csc_to_coo, graph.n_indices)))
        checks.append((6, lambda: _host.repeated(graph.map_csc_to_coo)))
    for rule, find in checks:
        position, _ = find()
        if position >= 0:
            return rule, position
    return -1, -1


KERNELS = tuple(("graph.cu", f"edgegrad::validate_csc<{ids}>") for ids in ("int", "long long"))


def _cuda_violation(graph: Graph) -> tuple[int, int]:
    from edgegrad.backends import cuda

    with cuda.on(graph.device) as cp:
        nowhere, n_ids = 2**64 - 1, 0 if graph.map_csc_to_coo is None else graph.n_indices
        found = cp.full(len(_RULES), nowhere, dtype=np.uint64)
        seen = cp.full(n_ids, nowhere, dtype=np.uint64)
        launch = cuda.Launch(
            source="graph.cu",
            kernel=KERNELS[graph.index_dtype == "int64"][1],
            grid=(min(1024, max(graph.n_dst_nodes, graph.n_indices) // 256 + 1),),
            block=(256,),
            args=(
                found.data.ptr,
                seen.data.ptr,
                graph.offsets.ptr,
                graph.indices.ptr,
                cuda.pointer(graph.edge_types),
                cuda.pointer(graph.map_csc_to_coo),
                np.int64(graph.n_dst_nodes),
                np.int64(graph.n_indices),
                np.int64(graph.n_src_nodes),
                np.int32(graph.n_edge_types),
            ),
        )
        cuda.launch(launch, graph.device)
        positions = cp.asnumpy(found).astype(np.int64)
    broken = np.flatnonzero(positions >= 0)
    return (-1, -1) if len(broken) == 0 else (int(broken[0]), int(positions[broken[0]]))
