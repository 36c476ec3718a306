"""New features of edges, put together from those of their ends and of the edge."""

from __future__ import annotations

from typing import Any

from edgegrad.graph import Graph
from edgegrad.operator import Arg, Operator, check
from edgegrad.operators.aggregate import GRAPHS
from edgegrad.operators.edges import incoming, outgoing
from edgegrad.operators.gather_reduce import copy_rows, reduce
from edgegrad.operators.per_edge import expand

_SOURCE = "Battaglia et al. 2018, arXiv:1806.01261, eq. 1"
_SCRATCH = "backward: partial sums of long rows"


def _inputs(edge: str, src: str, dst: str) -> tuple[Arg, ...]:
    """Declare the three inputs, whose last axes have these names."""
    return (
        Arg("input_edge_embedding", ("n_indices", edge), grad="grad_input_edge", optional=True),
        Arg(
            "input_src_node_embedding",
            ("n_src_nodes", src),
            grad="grad_input_src_node",
            optional=True,
        ),
        Arg(
            "input_dst_node_embedding",
            ("n_dst_nodes", dst),
            grad="grad_input_dst_node",
            optional=True,
        ),
    )


_DIMS = ("dim_edge", "dim_src", "dim_dst")

UPDATE_EFEAT_E2E_CONCAT = Operator(
    name="update_efeat_e2e_concat",
    outputs=(Arg("output_edge_embedding", ("n_indices", "dim_out"), grad="grad_output_edge"),),
    inputs=_inputs(*_DIMS),
    graphs=GRAPHS,
    sizes={"bwd": _DIMS},
    derived={"dim_out": lambda s: sum(s.get(name, 0) for name in _DIMS)},
    source=_SOURCE,
    scratch=_SCRATCH,
)
UPDATE_EFEAT_E2E_SUM = Operator(
    name="update_efeat_e2e_sum",
    outputs=(Arg("output_edge_embedding", ("n_indices", "dim_edge"), grad="grad_output_edge"),),
    inputs=_inputs("dim_edge", "dim_edge", "dim_edge"),
    graphs=GRAPHS,
    sizes={"bwd": ("dim_edge",)},
    source=_SOURCE,
    scratch=_SCRATCH,
)
OPERATORS = (UPDATE_EFEAT_E2E_CONCAT, UPDATE_EFEAT_E2E_SUM)


def update_efeat_e2e_concat_fwd(
    output_edge_embedding: Any,
    input_edge_embedding: Any,
    input_src_node_embedding: Any,
    input_dst_node_embedding: Any,
    graph: Graph,
    stream_id: int = 0,
) -> None:
    r"""Put the features of every edge, its source and its destination side by side.

    .. math:: y_{m(e)} = [\, h_{m(e)} \,|\, x_j \,|\, z_i \,], \qquad e = (j \to i)

    Parameters
    ----------
    output_edge_embedding : array (n_indices, dim_out), T
        Written, by edge id: edge e of the graph has row m(e) = `map_csc_to_coo[e]`, or e without
        that map. ``dim_out`` is the sum of the widths of the inputs given.
    input_edge_embedding : array (n_indices, dim_edge), T, or None
        Features of the edges, by edge id; None: left out.
    input_src_node_embedding : array (n_src_nodes, dim_src), T, or None
        Features of the sources; None: left out.
    input_dst_node_embedding : array (n_dst_nodes, dim_dst), T, or None
        Features of the destinations; None: left out.
    graph : csc, bipartite_csc, csc_hg or bipartite_csc_hg, int32 or int64
        Edges grouped by destination, on the device of the arrays; edge types are not looked at.
    stream_id : int
        CUDA stream handle the work goes on; 0 is the legacy default stream. Nothing synchronises.

    Raises
    ------
    ArgumentError
        If an array or the graph is not as described; `TypeError` for kinds and dtypes, `ValueError`
        for shapes, layouts and devices.

    Notes
    -----
    Dtypes: T is float16, bfloat16, float32 or float64. Ids are int32 or int64. Every edge has a
    row; a destination without in-edges gets 0 of them. Determinism: run-to-run, bitwise.
    Scratch: none.
    Source: Battaglia et al. 2018, arXiv:1806.01261, eq. 1
    """
    given = {
        "output_edge_embedding": output_edge_embedding,
        "input_edge_embedding": input_edge_embedding,
        "input_src_node_embedding": input_src_node_embedding,
        "input_dst_node_embedding": input_dst_node_embedding,
    }
    call = check(UPDATE_EFEAT_E2E_CONCAT, "fwd", graph, given, stream_id=stream_id)
    a, edges, begin = call.arrays, incoming(graph, "node", stream_id), 0
    for operand, name in (
        ("edge", "input_edge_embedding"),
        ("source", "input_src_node_embedding"),
        ("row", "input_dst_node_embedding"),
    ):
        if a[name] is not None:
            width = a[name].shape[1]
            columns = a["output_edge_embedding"].columns(begin, width)
            expand(edges, columns, stream_id, **{operand: a[name]})
            begin += width


def update_efeat_e2e_concat_bwd(
    grad_input_edge: Any,
    grad_input_src_node: Any,
    grad_input_dst_node: Any,
    grad_output_edge: Any,
    graph: Graph,
    dim_edge: int,
    dim_src: int,
    dim_dst: int,
    stream_id: int = 0,
) -> None:
    r"""Write the gradients of `update_efeat_e2e_concat_fwd` that are asked for.

    .. math:: \bar h_{m(e)} = g^{edge}_{m(e)}, \quad
              \bar x_j = \sum_{e = (j \to i)} g^{src}_{m(e)}, \quad
              \bar z_i = \sum_{e = (j \to i)} g^{dst}_{m(e)}

    Parameters
    ----------
    grad_input_edge : array (n_indices, dim_edge), T, or None
        Written, by edge id.
    grad_input_src_node : array (n_src_nodes, dim_src), T, or None
        Written.
    grad_input_dst_node : array (n_dst_nodes, dim_dst), T, or None
        Written.
    grad_output_edge : array (n_indices, dim_out), T
        Gradient of the output, by edge id.
    graph, stream_id
        As in forward.
    dim_edge, dim_src, dim_dst : int
        Widths of the inputs; 0 for one that was left out.

    Raises
    ------
    ArgumentError
        As in forward.

    Notes
    -----
    Dtypes and determinism as in forward; sums are kept in float32 (float64 for float64), and
    sources gather over the reverse graph, built on first need. Scratch: partial sums of long rows.
    Source: Battaglia et al. 2018, arXiv:1806.01261, eq. 1
    """
    given = {
        "grad_input_edge": grad_input_edge,
        "grad_input_src_node": grad_input_src_node,
        "grad_input_dst_node": grad_input_dst_node,
        "grad_output_edge": grad_output_edge,
    }
    sizes = {"dim_edge": dim_edge, "dim_src": dim_src, "dim_dst": dim_dst}
    a = check(UPDATE_EFEAT_E2E_CONCAT, "bwd", graph, given, sizes, stream_id).arrays
    g = a["grad_output_edge"]
    parts = (
        g.columns(0, dim_edge),
        g.columns(dim_edge, dim_src),
        g.columns(dim_edge + dim_src, dim_dst),
    )
    _backward(a, parts, graph, stream_id)


def update_efeat_e2e_sum_fwd(
    output_edge_embedding: Any,
    input_edge_embedding: Any,
    input_src_node_embedding: Any,
    input_dst_node_embedding: Any,
    graph: Graph,
    stream_id: int = 0,
) -> None:
    r"""Add up the features of every edge, its source and its destination.

    .. math:: y_{m(e)} = h_{m(e)} + x_j + z_i, \qquad e = (j \to i)

    Parameters
    ----------
    output_edge_embedding : array (n_indices, dim_edge), T
        Written, by edge id (see `update_efeat_e2e_concat_fwd`).
    input_edge_embedding : array (n_indices, dim_edge), T, or None
        Features of the edges, by edge id; None: left out.
    input_src_node_embedding : array (n_src_nodes, dim_edge), T, or None
        Features of the sources; None: left out.
    input_dst_node_embedding : array (n_dst_nodes, dim_edge), T, or None
        Features of the destinations; None: left out.
    graph : csc, bipartite_csc, csc_hg or bipartite_csc_hg, int32 or int64
        As in `update_efeat_e2e_concat_fwd`.
    stream_id : int
        As in `update_efeat_e2e_concat_fwd`.

    Raises
    ------
    ArgumentError
        As in `update_efeat_e2e_concat_fwd`.

    Notes
    -----
    Dtypes: T is float16, bfloat16, float32 or float64; the sum is rounded once. Ids are int32 or
    int64. Every edge has a row; a destination without in-edges gets 0 of them.
    Determinism: run-to-run, bitwise. Scratch: none.
    Source: Battaglia et al. 2018, arXiv:1806.01261, eq. 1
    """
    given = {
        "output_edge_embedding": output_edge_embedding,
        "input_edge_embedding": input_edge_embedding,
        "input_src_node_embedding": input_src_node_embedding,
        "input_dst_node_embedding": input_dst_node_embedding,
    }
    a = check(UPDATE_EFEAT_E2E_SUM, "fwd", graph, given, stream_id=stream_id).arrays
    expand(
        incoming(graph, "node", stream_id), a["output_edge_embedding"], stream_id,
        edge=a["input_edge_embedding"], source=a["input_src_node_embedding"],
        row=a["input_dst_node_embedding"],
    )  # fmt: skip


def update_efeat_e2e_sum_bwd(
    grad_input_edge: Any,
    grad_input_src_node: Any,
    grad_input_dst_node: Any,
    grad_output_edge: Any,
    graph: Graph,
    dim_edge: int,
    stream_id: int = 0,
) -> None:
    r"""Write the gradients of `update_efeat_e2e_sum_fwd` that are asked for.

    .. math:: \bar h_{m(e)} = g_{m(e)}, \quad
              \bar x_j = \sum_{e = (j \to i)} g_{m(e)}, \quad
              \bar z_i = \sum_{e = (j \to i)} g_{m(e)}

    Parameters
    ----------
    grad_input_edge : array (n_indices, dim_edge), T, or None
        Written, by edge id.
    grad_input_src_node : array (n_src_nodes, dim_edge), T, or None
        Written.
    grad_input_dst_node : array (n_dst_nodes, dim_edge), T, or None
        Written.
    grad_output_edge : array (n_indices, dim_edge), T
        Gradient of the output, by edge id.
    graph, stream_id
        As in forward.
    dim_edge : int
        Width of the inputs.

    Raises
    ------
    ArgumentError
        As in forward.

    Notes
    -----
    Dtypes and determinism as in forward; sums are kept in float32 (float64 for float64), and
    sources gather over the reverse graph, built on first need. Scratch: partial sums of long rows.
    Source: Battaglia et al. 2018, arXiv:1806.01261, eq. 1
    """
    given = {
        "grad_input_edge": grad_input_edge,
        "grad_input_src_node": grad_input_src_node,
        "grad_input_dst_node": grad_input_dst_node,
        "grad_output_edge": grad_output_edge,
    }
    a = check(UPDATE_EFEAT_E2E_SUM, "bwd", graph, given, {"dim_edge": dim_edge}, stream_id).arrays
    _backward(a, (a["grad_output_edge"],) * 3, graph, stream_id)


def _backward(a: dict[str, Any], parts: tuple[Any, ...], graph: Graph, stream_id: int) -> None:
    """Send each part of the output's gradient back to the edges, sources and destinations."""
    edge, src, dst = parts
    if a["grad_input_edge"] is not None:
        copy_rows(a["grad_input_edge"], edge, graph, stream_id)
    if a["grad_input_src_node"] is not None:
        reduce(outgoing(graph, "edge", stream_id), a["grad_input_src_node"], src, stream_id)
    if a["grad_input_dst_node"] is not None:
        reduce(incoming(graph, "edge", stream_id), a["grad_input_dst_node"], dst, stream_id)
