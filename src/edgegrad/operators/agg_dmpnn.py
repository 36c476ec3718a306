"""Directed message passing: edges aggregate those that enter their source, but their reverse."""

from __future__ import annotations

from typing import Any

from edgegrad import _host
from edgegrad.backends import scratch
from edgegrad.errors import wrong_index
from edgegrad.graph import Graph, build
from edgegrad.interop import ArrayView
from edgegrad.operator import Arg, Operator, check
from edgegrad.operators.edges import incoming, outgoing
from edgegrad.operators.gather_reduce import copy_rows, reduce
from edgegrad.operators.per_edge import expand

AGG_DMPNN_E2E = Operator(
    name="agg_dmpnn_e2e",
    outputs=(Arg("output_edge_embedding", ("n_indices", "dim_out"), grad="grad_output_edge"),),
    inputs=(
        Arg("input_edge_embedding", ("n_indices", "dim"), grad="grad_input_edge"),
        Arg("rev_edge_ids", ("n_indices",), dtype="Idx", keyword=True),
    ),
    graphs=("csc", "csc_hg"),
    keeps=("rev_edge_ids",),
    derived={"dim_out": lambda s: s["dim"] * (1 + s["concat_own"])},
    source="Yang et al. 2019, arXiv:1904.01561, eq. 1-2",
    scratch="n_src_nodes x dim accumulators; backward: the edges listed by reverse edge",
)
OPERATORS = (AGG_DMPNN_E2E,)


def agg_dmpnn_e2e_fwd(
    output_edge_embedding: Any,
    input_edge_embedding: Any,
    graph: Graph,
    rev_edge_ids: Any,
    concat_own: bool = False,
    stream_id: int = 0,
) -> None:
    r"""Aggregate, for every edge, the edges that enter its source, except its reverse edge.

    .. math:: y_{m(e)} = \sum_{k = (u \to v)} h_{m(k)} - h_{rev(m(e))}, \qquad e = (v \to w)

    Parameters
    ----------
    output_edge_embedding : array (n_indices, dim_out), T
        Written, by edge id: edge e of the graph has row m(e) = `map_csc_to_coo[e]`, or e without
        that map. ``dim_out`` is ``dim``, twice that if `concat_own`.
    input_edge_embedding : array (n_indices, dim), T
        Features of the edges, by edge id.
    graph : csc or csc_hg, int32 or int64
        Edges grouped by destination, on the device of the arrays; edge types are not looked at.
    rev_edge_ids : array (n_indices), Idx
        By edge id: the id of the reverse edge, -1 for none. On the host ids out of range raise; on
        a GPU they have no defined behaviour.
    concat_own : bool
        Append the edge's own features as the last ``dim`` columns.
    stream_id : int
        CUDA stream handle the work goes on; 0 is the legacy default stream. Nothing synchronises.

    Raises
    ------
    ArgumentError
        If an array, the graph or an option is not as described; `TypeError` for kinds and dtypes,
        `ValueError` for shapes, layouts and devices, `IndexError` for ids.

    Notes
    -----
    Dtypes: T is float16, bfloat16, float32 or float64; sums are kept in float32 (float64 for
    float64) and rounded once, after the subtraction. Ids are int32 or int64. An edge whose source
    is a destination without in-edges gets 0. Determinism: run-to-run, bitwise. Scratch: n_src_nodes
    x dim accumulators, and partial sums of long rows.
    Source: Yang et al. 2019, arXiv:1904.01561, eq. 1-2
    """
    given = {
        "output_edge_embedding": output_edge_embedding,
        "input_edge_embedding": input_edge_embedding,
        "rev_edge_ids": rev_edge_ids,
    }
    sizes = {"concat_own": int(bool(concat_own))}
    call = check(AGG_DMPNN_E2E, "fwd", graph, given, sizes, stream_id)
    a, dim, h = call.arrays, call.sizes["dim"], call.arrays["input_edge_embedding"]
    _check_ids(call.where, a["rev_edge_ids"])
    entering = _entering(graph, h, stream_id)
    expand(
        incoming(graph, "node", stream_id), a["output_edge_embedding"].columns(0, dim), stream_id,
        source=entering, subtrahend=h, list=a["rev_edge_ids"],
    )  # fmt: skip
    if concat_own:
        copy_rows(a["output_edge_embedding"].columns(dim, dim), h, graph, stream_id)


def agg_dmpnn_e2e_bwd(
    grad_input_edge: Any,
    grad_output_edge: Any,
    graph: Graph,
    rev_edge_ids: Any,
    concat_own: bool = False,
    stream_id: int = 0,
) -> None:
    r"""Write the gradient of `agg_dmpnn_e2e_fwd`.

    .. math:: \bar h_{m(k)} = \sum_{e = (v \to w)} g_{m(e)} - \sum_{t : rev(t) = m(k)} g_t
              + g^{own}_{m(k)}, \qquad k = (u \to v)

    Parameters
    ----------
    grad_input_edge : array (n_indices, dim), T, or None
        Written, by edge id; None: nothing is done.
    grad_output_edge : array (n_indices, dim_out), T
        Gradient of the output, by edge id.
    graph, concat_own, stream_id
        As in forward.
    rev_edge_ids : array (n_indices), Idx
        As in forward. An edge may be the reverse of several, or of none.

    Raises
    ------
    ArgumentError
        As in forward.

    Notes
    -----
    Dtypes, accumulation and determinism as in forward. Scratch: n_src_nodes x dim accumulators,
    and the edges listed by their reverse edge, two arrays of ids.
    Source: Yang et al. 2019, arXiv:1904.01561, eq. 1-2
    """
    given = {
        "grad_input_edge": grad_input_edge,
        "grad_output_edge": grad_output_edge,
        "rev_edge_ids": rev_edge_ids,
    }
    sizes = {"concat_own": int(bool(concat_own))}
    call = check(AGG_DMPNN_E2E, "bwd", graph, given, sizes, stream_id)
    a = call.arrays
    _check_ids(call.where, a["rev_edge_ids"])
    if grad_input_edge is None:
        return
    dim, g = call.sizes["dim"], a["grad_output_edge"]
    message = g.columns(0, dim)
    leaving = scratch.accumulators(g, (graph.n_src_nodes, dim), stream_id)
    reduce(outgoing(graph, "edge", stream_id), leaving, message, stream_id)
    offsets, order = build.listed_by(a["rev_edge_ids"], graph.n_indices, stream_id)
    expand(
        incoming(graph, "node", stream_id), a["grad_input_edge"], stream_id, row=leaving,
        edge=g.columns(dim, dim) if concat_own else None,
        subtrahend=message, list=order, list_offsets=offsets,
    )  # fmt: skip


def _entering(graph: Graph, h: ArrayView, stream_id: int) -> ArrayView:
    """Return the sum of the edges that enter each node, in accumulators."""
    shape, dtype = (graph.n_src_nodes, h.shape[1]), scratch.accumulator(h)
    # Sources beyond the destinations have no edges that enter them.
    make = scratch.empty if graph.n_src_nodes == graph.n_dst_nodes else scratch.zeros
    sums = make(h.device, shape, dtype, stream_id)
    reduce(incoming(graph, "edge", stream_id), sums, h, stream_id)
    return sums


def _check_ids(where: str, ids: ArrayView) -> None:
    """Refuse ids of edges that are not there; on a GPU that would have to wait for it."""
    if ids.device != "cpu":
        return
    position, value = _host.not_in_range(ids, -1, len(ids))
    if position >= 0:
        expected = f"an id in [-1, {len(ids)})"
        raise wrong_index(where, f"rev_edge_ids[{position}]", f"the value {value}", expected)
