"""Sparse times dense: the graph as a matrix of destinations x sources, and its gradients."""

from __future__ import annotations

from typing import Any

from edgegrad.errors import wrong_value
from edgegrad.graph import Graph
from edgegrad.operator import ABSENT, BATCH, HEADS, Arg, Call, Operator, check
from edgegrad.operators import per_edge
from edgegrad.operators.agg_op import BASIC, AggOp, agg_op, check_extrema
from edgegrad.operators.aggregate import GRAPHS
from edgegrad.operators.edges import Edges, incoming, outgoing
from edgegrad.operators.gather_reduce import aggregate, back, grad_nodes

SPMM = Operator(
    name="spmm",
    outputs=(Arg("output", (BATCH, "n_rows", "dim"), grad="grad_output"),),
    inputs=(
        Arg("values", ("n_indices", HEADS), dtype="V", grad="grad_values", optional=True),
        Arg("dense", (BATCH, "n_columns", "dim"), grad="grad_dense"),
    ),
    graphs=GRAPHS,
    keeps=("values", "dense"),
    saved=(Arg("extrema", (BATCH, "n_rows", "dim"), dtype="Idx", optional=True, keyword=True),),
    scratch="partial sums of long rows",
    source="Huang et al. 2020, arXiv:2007.03179",
)
OPERATORS = (SPMM,)


def spmm_fwd(
    output: Any,
    values: Any,
    dense: Any,
    graph: Graph,
    *,
    reduce: AggOp | str = AggOp.Sum,
    transpose: bool = False,
    extrema: Any = None,
    stream_id: int = 0,
) -> None:
    r"""Multiply the graph's matrix A, or its transpose, with a dense matrix.

    .. math:: Y_{ic} = \operatorname{reduce}_{e = (j \to i)} a_{e, h(c)} X_{jc}

    A has a row for each destination i, a column for each source j, and an entry a_e for each edge:
    parallel edges are entries of their own. With heads, h(c) is the head that column c belongs to.

    Parameters
    ----------
    output : array ([batch], n_rows, dim), T
        Written, not accumulated into. Rows are destinations, or sources when transposed.
    values : array (n_indices, [heads]), V, or None
        Entries of A in CSC order, like `graph.indices`; None: ones. With heads, each multiplies
        its ``dim / heads`` columns, which are side by side.
    dense : array ([batch], n_columns, dim), T
        Rows are sources, or destinations when transposed.
    graph : csc, bipartite_csc, csc_hg or bipartite_csc_hg, int32 or int64
        Edges grouped by destination, on the device of the arrays; edge types are not looked at.
    reduce : AggOp or str
        Sum, Mean (over the number of a row's entries), Min or Max of the products.
    transpose : bool
        Multiply with the transpose of A, whose rows are sources.
    extrema : array ([batch], n_rows, dim), Idx, or None
        Written for Min and Max, and needed there: CSC position of the winner, -1 for none. Has to
        be None for the others.
    stream_id : int
        CUDA stream handle the work goes on; 0 is the legacy default stream. Nothing synchronises.

    Raises
    ------
    ArgumentError
        If an array, the graph or an option is not as described; `TypeError` for kinds and dtypes,
        `ValueError` for shapes, layouts, devices and values.

    Notes
    -----
    Dtypes: T is float16, bfloat16, float32 or float64; V is T, or float32 beside half types. Sums
    are kept in float32 (float64 for float64) and rounded once. Ids are int32 or int64. A row
    without entries, such as a destination without in-edges gets 0. Min and Max have one winner, the
    lowest CSC position among equals; a NaN wins. Determinism: run-to-run, bitwise, for any number
    of threads. Scratch: partial sums of rows longer than 4,096 edges (host) or 512 edges (GPU), one
    row of the result for each such run of edges. The transpose gathers over the reverse graph,
    built on first need.
    Source: Huang et al. 2020, arXiv:2007.03179
    """
    where = "spmm_fwd"
    op = agg_op(where, "reduce", reduce, BASIC)
    check_extrema(where, "extrema", op, extrema)
    given = {"output": output, "values": values, "dense": dense, "extrema": extrema}
    call = _check(SPMM, "fwd", graph, given, transpose, stream_id)
    a, edges = call.arrays, _edges(graph, transpose, stream_id)
    aggregate(
        op, edges, a["output"], a["dense"], stream_id,
        extrema=a["extrema"], weight=a["values"], heads=call.n_heads,
    )  # fmt: skip


def spmm_bwd(
    grad_values: Any,
    grad_dense: Any,
    grad_output: Any,
    values: Any,
    dense: Any,
    graph: Graph,
    *,
    reduce: AggOp | str = AggOp.Sum,
    transpose: bool = False,
    extrema: Any = None,
    stream_id: int = 0,
) -> None:
    r"""Write the gradients of `spmm_fwd` that are asked for; no dense gradient of A is ever made.

    .. math:: \bar X_j = \sum_{e = (j \to i)} k_{ie} a_e G_i, \qquad
              \bar a_e = \langle k_{ie} G_i, X_j \rangle

    k is 1 for Sum, one over the number of entries of row i for Mean, and for Min and Max 1 in the
    columns that e won, 0 elsewhere. With heads the product runs over the columns of each.

    Parameters
    ----------
    grad_values : array (n_indices, [heads]), V, or None
        Written, in CSC order; summed over the batch.
    grad_dense : array ([batch], n_columns, dim), T, or None
        Written.
    grad_output : array ([batch], n_rows, dim), T
        Gradient of the output.
    values : array (n_indices, [heads]), V, or None
        As in forward.
    dense : array ([batch], n_columns, dim), T
        As in forward.
    graph, reduce, transpose, stream_id
        As in forward.
    extrema : array ([batch], n_rows, dim), Idx, or None
        What forward wrote.

    Raises
    ------
    ArgumentError
        As in forward.

    Notes
    -----
    Dtypes, accumulation and determinism as in forward: `grad_dense` gathers over the reverse graph,
    built on first need. Scratch as in forward: beyond the graph and the arrays of the call nothing
    grows with the number of edges. The pair spmm (sum) and sddmm (dot) is closed under
    differentiation, so higher derivatives are calls of these two.
    Source: Huang et al. 2020, arXiv:2007.03179
    """
    where = "spmm_bwd"
    op = agg_op(where, "reduce", reduce, BASIC)
    check_extrema(where, "extrema", op, extrema)
    given = {
        "grad_values": grad_values,
        "grad_dense": grad_dense,
        "grad_output": grad_output,
        "values": values,
        "dense": dense,
        "extrema": extrema,
    }
    call = _check(SPMM, "bwd", graph, given, transpose, stream_id)
    a, heads = call.arrays, call.n_heads
    if grad_values is None and grad_dense is None:
        return
    edges, g = _edges(graph, transpose, stream_id), a["grad_output"]
    kept = back(op, edges, g, stream_id, extrema=a["extrema"])
    if grad_dense is not None:
        turned = _edges(graph, not transpose, stream_id)
        grad_nodes(turned, a["grad_dense"], g, kept, stream_id, weight=a["values"], heads=heads)
    if grad_values is not None:
        per_edge.grad_factor(
            edges, a["grad_values"], g, a["dense"], stream_id,
            heads=heads, extrema=kept.extrema, divide=kept.divide,
        )  # fmt: skip


def _edges(graph: Graph, transpose: bool, stream_id: int) -> Edges:
    """Edges by the row of the result they add to."""
    by_row = outgoing if transpose else incoming
    return by_row(graph, "node", stream_id)


def _check(
    op: Operator, half: Any, graph: Graph, given: dict[str, Any], transpose: bool, stream_id: int
) -> Call:
    n = [getattr(graph, name, 0) for name in ("n_dst_nodes", "n_src_nodes")]
    rows, columns = reversed(n) if transpose else n
    sizes = {"n_rows": rows, "n_columns": columns}
    call = check(op, half, graph, given, sizes, stream_id)
    heads, dim = call.sizes.get(HEADS, ABSENT), call.sizes["dim"]
    if heads == 0 or (heads != ABSENT and dim % heads != 0):
        name = "grad_values" if given["values"] is None else "values"
        expected = f"a number of heads that divides dim = {dim}"
        raise wrong_value(call.where, name, f"heads = {heads}", expected)
    return call
