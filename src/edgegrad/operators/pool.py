"""Readout: the nodes of every graph of a batch as one row."""

from __future__ import annotations

from typing import Any

import numpy as np

from edgegrad import _host
from edgegrad.backends import host
from edgegrad.errors import wrong_value
from edgegrad.graph.build import plan_pieces
from edgegrad.operator import Arg, Call, Operator, check
from edgegrad.operators.agg_op import AggOp, agg_op, check_extrema, check_kept
from edgegrad.operators.aggregate import EXTREMA, extrema_arg
from edgegrad.operators.edges import Edges
from edgegrad.operators.gather_reduce import aggregate, back, grad_edges

POOL_N2S = Operator(
    name="pool_n2s",
    outputs=(Arg("output", ("n_graphs", "dim"), grad="grad_output"),),
    inputs=(
        Arg("input", ("n_nodes", "dim"), grad="grad_input"),
        Arg("node_offsets", ("n_offsets",), dtype="Idx"),
    ),
    graphs=(),
    keeps=("node_offsets",),
    may_keep=("input", "output"),
    saved=(extrema_arg("n_graphs", "dim"),),
    derived={"n_graphs": lambda s: max(0, s["n_offsets"] - 1)},
    source="Xu et al. 2019, arXiv:1810.00826; var and std: Corso et al. 2020, arXiv:2004.05718",
    scratch="partial sums of large graphs (host); var and std: the means, n_graphs x dim",
)
OPERATORS = (POOL_N2S,)


def pool_n2s_fwd(
    output: Any,
    input: Any,
    node_offsets: Any,
    aggregation_operation: AggOp | str = AggOp.Sum,
    output_extrema_location: Any = None,
    stream_id: int = 0,
) -> None:
    r"""Aggregate the nodes of every graph of a batch.

    .. math:: y_s = \operatorname{op}_{n = o_s}^{o_{s + 1} - 1} x_n

    Parameters
    ----------
    output : array (n_graphs, dim), T
        Written, not accumulated into.
    input : array (n_nodes, dim), T
        Features of the nodes, those of a graph next to each other.
    node_offsets : array (n_offsets), Idx
        Where the nodes of each graph begin, closed by n_nodes; ``n_offsets = n_graphs + 1``. On the
        host they are checked; on a GPU wrong ones have no defined behaviour.
    aggregation_operation : AggOp or str
        Sum, Mean, Min, Max, Var (population variance) or Std.
    output_extrema_location : array (n_graphs, dim), Idx, or None
        Written for Min and Max, and needed there: the node that won, -1 for none. Has to be None
        for the others.
    stream_id : int
        CUDA stream handle the work goes on; 0 is the legacy default stream. Nothing synchronises.

    Raises
    ------
    ArgumentError
        If an array or an option is not as described; `TypeError` for kinds and dtypes, `ValueError`
        for shapes, layouts, devices and values.

    Notes
    -----
    Dtypes: T is float16, bfloat16, float32 or float64; sums are kept in float32 (float64 for
    float64) and rounded once. Idx is int32 or int64. A graph without nodes gets 0, as a destination
    without in-edges gets 0 elsewhere. Ties and NaN as in `agg_simple_n2n_fwd`.
    Determinism: run-to-run, bitwise. Scratch: on the host, partial sums of graphs of more than
    4,096 nodes; Var and Std: the means, n_graphs x dim. On a GPU a graph is one team's work,
    however large.
    Source: Xu et al. 2019, arXiv:1810.00826; var and std: Corso et al. 2020, arXiv:2004.05718
    """
    where = "pool_n2s_fwd"
    op = agg_op(where, "aggregation_operation", aggregation_operation)
    check_extrema(where, EXTREMA, op, output_extrema_location)
    given = {
        "output": output,
        "input": input,
        "node_offsets": node_offsets,
        EXTREMA: output_extrema_location,
    }
    call = check(POOL_N2S, "fwd", None, given, stream_id=stream_id)
    a, nodes = call.arrays, _nodes(call)
    aggregate(op, nodes, a["output"], a["input"], stream_id, extrema=a[EXTREMA])


def pool_n2s_bwd(
    grad_input: Any,
    grad_output: Any,
    node_offsets: Any,
    aggregation_operation: AggOp | str = AggOp.Sum,
    output_extrema_location: Any = None,
    stream_id: int = 0,
    *,
    input: Any = None,
    output: Any = None,
) -> None:
    r"""Write the gradient of `pool_n2s_fwd`.

    .. math:: \bar x_n = \frac{\partial y_s}{\partial x_n} g_s, \qquad o_s \le n < o_{s + 1}

    The factors are those of `agg_simple_n2n_bwd`, with nodes for edges.

    Parameters
    ----------
    grad_input : array (n_nodes, dim), T, or None
        Written; None: nothing is done.
    grad_output : array (n_graphs, dim), T
        Gradient of the output.
    node_offsets : array (n_offsets), Idx
        As in forward.
    aggregation_operation, stream_id
        As in forward.
    output_extrema_location : array (n_graphs, dim), Idx, or None
        What forward wrote.
    input : array (n_nodes, dim), T, or None
        As in forward; needed for Var and Std, not read otherwise.
    output : array (n_graphs, dim), T, or None
        What forward wrote; needed for Std, not read otherwise.

    Raises
    ------
    ArgumentError
        As in forward.

    Notes
    -----
    Dtypes and determinism as in forward. Scratch: Var and Std: the means, n_graphs x dim.
    Source: Xu et al. 2019, arXiv:1810.00826; var and std: Corso et al. 2020, arXiv:2004.05718
    """
    where = "pool_n2s_bwd"
    op = agg_op(where, "aggregation_operation", aggregation_operation)
    check_extrema(where, EXTREMA, op, output_extrema_location)
    check_kept(where, op, {"input": input}, {"output": output})
    given = {
        "grad_input": grad_input,
        "grad_output": grad_output,
        "node_offsets": node_offsets,
        EXTREMA: output_extrema_location,
        "input": input,
        "output": output,
    }
    call = check(POOL_N2S, "bwd", None, given, stream_id=stream_id)
    if grad_input is None:
        return
    a, nodes = call.arrays, _nodes(call)
    kept = back(
        op, nodes, a["grad_output"], stream_id,
        extrema=a[EXTREMA], values=a["input"], output=a["output"],
    )  # fmt: skip
    grad_edges(nodes, a["grad_input"], a["grad_output"], kept, stream_id)


def _nodes(call: Call) -> Edges:
    """Return the nodes as edges of their graph, each reading its own row."""
    offsets, n_nodes = call.arrays["node_offsets"], call.sizes["n_nodes"]
    cut = None
    if offsets.device == "cpu":
        _check_offsets(call.where, offsets, n_nodes)
        cut = plan_pieces(offsets, host.PIECE_EDGES)
    return Edges(call.sizes["n_graphs"], n_nodes, offsets.dtype, offsets, cut=cut)


def _check_offsets(where: str, offsets: Any, n_nodes: int) -> None:
    ends = np.asarray(offsets)[[0, -1]] if len(offsets) else None
    if ends is None or ends[0] != 0 or ends[1] != n_nodes:
        has = "no entries" if ends is None else f"ends {int(ends[0])} and {int(ends[1])}"
        raise wrong_value(where, "node_offsets", has, f"0 and n_nodes = {n_nodes}")
    position, value = _host.not_monotone(offsets)
    if position >= 0:
        has = f"the value {value} at position {position}"
        raise wrong_value(where, "node_offsets", has, "a value that is not below the one before")
