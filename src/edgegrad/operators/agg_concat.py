"""Aggregation with the destinations' own features appended: what a SAGE layer reads."""

from __future__ import annotations

from typing import Any

from edgegrad.graph import Graph
from edgegrad.operator import BATCH, Arg, Operator
from edgegrad.operators import aggregate
from edgegrad.operators.agg_op import AggOp
from edgegrad.operators.aggregate import EXTREMA, Layout, backward, extrema_arg, forward

# Own features are those of the source of the same number, so the sides may not be independent.
_WITH_OWN_ROWS = ("csc", "csc_hg")

AGG_CONCAT_N2N = Operator(
    name="agg_concat_n2n",
    outputs=(Arg("output_embedding", (BATCH, "n_dst_nodes", "dim_out"), grad="grad_output"),),
    inputs=(Arg("input_embedding", (BATCH, "n_src_nodes", "dim"), grad="grad_input"),),
    graphs=_WITH_OWN_ROWS,
    saved=(extrema_arg(BATCH, "n_dst_nodes", "dim"),),
    may_keep=("input_embedding", "output_embedding"),
    derived={"dim_out": lambda s: 2 * s["dim"]},
    source=aggregate.SOURCE,
    scratch=aggregate.SCRATCH,
)
AGG_CONCAT_E2N = Operator(
    name="agg_concat_e2n",
    outputs=(Arg("output_embedding", ("n_dst_nodes", "dim_out"), grad="grad_output"),),
    inputs=(
        Arg("input_edge_embedding", ("n_indices", "dim_edge"), grad="grad_input_edge"),
        Arg("input_node_embedding", ("n_dst_nodes", "dim_node"), grad="grad_input_node"),
    ),
    graphs=aggregate.GRAPHS,
    saved=(extrema_arg("n_dst_nodes", "dim_edge"),),
    may_keep=("input_edge_embedding", "output_embedding"),
    sizes={"bwd": ("dim_edge", "dim_node")},
    derived={"dim_out": lambda s: s["dim_edge"] + s["dim_node"]},
    source=aggregate.SOURCE,
    scratch=aggregate.SCRATCH,
)
AGG_CONCAT_N2N_E2N = Operator(
    name="agg_concat_n2n_e2n",
    outputs=(Arg("output_embedding", ("n_dst_nodes", "dim_out"), grad="grad_output"),),
    inputs=(
        Arg("input_node_embedding", ("n_src_nodes", "dim_node"), grad="grad_input_node"),
        Arg("input_edge_embedding", ("n_indices", "dim_edge"), grad="grad_input_edge"),
    ),
    graphs=_WITH_OWN_ROWS,
    saved=(extrema_arg("n_dst_nodes", "dim_aggregated"),),
    may_keep=("input_node_embedding", "input_edge_embedding", "output_embedding"),
    sizes={"fwd": ("dim_node", "dim_edge"), "bwd": ("dim_node", "dim_edge")},
    derived={
        "dim_out": lambda s: 2 * s["dim_node"] + s["dim_edge"],
        "dim_aggregated": lambda s: s["dim_node"] + s["dim_edge"],
    },
    source=aggregate.SOURCE,
    scratch=aggregate.SCRATCH,
)
OPERATORS = (AGG_CONCAT_N2N, AGG_CONCAT_E2N, AGG_CONCAT_N2N_E2N)

_N2N = Layout(node="input_embedding", own="input_embedding")
_E2N = Layout(edge="input_edge_embedding", own="input_node_embedding")
_N2N_E2N = Layout(
    node="input_node_embedding", edge="input_edge_embedding", own="input_node_embedding"
)


def agg_concat_n2n_fwd(
    output_embedding: Any,
    input_embedding: Any,
    graph: Graph,
    aggregation_operation: AggOp | str = AggOp.Sum,
    output_extrema_location: Any = None,
    stream_id: int = 0,
) -> None:
    r"""Aggregate the features of sources and append the own ones.

    .. math:: y_i = [\, \operatorname{op}_{e = (j \to i)} x_j \,|\, x_i \,]

    Parameters
    ----------
    output_embedding : array ([batch], n_dst_nodes, dim_out), T
        Written, not accumulated into; ``dim_out = 2 * dim``.
    input_embedding : array ([batch], n_src_nodes, dim), T
        Features of the sources, those of the destinations first.
    graph : csc or csc_hg, int32 or int64
        As in `agg_simple_n2n_fwd`, but not bipartite: own rows are those of the first sources.
    aggregation_operation, stream_id
        As in `agg_simple_n2n_fwd`.
    output_extrema_location : array ([batch], n_dst_nodes, dim), Idx, or None
        Written for Min and Max, and needed there: CSC position of the winner, -1 for none. Has to
        be None for the others.

    Raises
    ------
    ArgumentError
        As in `agg_simple_n2n_fwd`.

    Notes
    -----
    Dtypes (float16, bfloat16, float32, float64), accumulation and ties as in `agg_simple_n2n_fwd`.
    A destination without in-edges gets 0 where it aggregates, its own features still.
    Determinism: run-to-run, bitwise. Scratch: partial sums of long rows; Var and Std: the means.
    Source: Hamilton et al. 2017, arXiv:1706.02216; var and std: Corso et al. 2020, arXiv:2004.05718
    """
    given = {
        "output_embedding": output_embedding,
        "input_embedding": input_embedding,
        EXTREMA: output_extrema_location,
    }
    forward(AGG_CONCAT_N2N, _N2N, given, graph, aggregation_operation, stream_id)


def agg_concat_n2n_bwd(
    grad_input: Any,
    grad_output: Any,
    graph: Graph,
    aggregation_operation: AggOp | str = AggOp.Sum,
    output_extrema_location: Any = None,
    stream_id: int = 0,
    *,
    input_embedding: Any = None,
    output_embedding: Any = None,
) -> None:
    r"""Write the gradients of `agg_concat_n2n_fwd` that are asked for.

    .. math:: \bar x_j = \sum_{e = (j \to i)} \frac{\partial y_i}{\partial x_j} g_i + g^{own}_j

    The factors are those of `agg_simple_n2n_bwd`; the own part is added to the own row.

    Parameters
    ----------
    grad_input : array ([batch], n_src_nodes, dim), T, or None
        Written; None: nothing is done.
    grad_output : array ([batch], n_dst_nodes, dim_out), T
        Gradient of the output.
    graph, aggregation_operation, stream_id
        As in forward.
    output_extrema_location : array ([batch], n_dst_nodes, dim), Idx, or None
        What forward wrote.
    input_embedding : array ([batch], n_src_nodes, dim), T, or None
        As in forward; needed for Var and Std, not read otherwise.
    output_embedding : array ([batch], n_dst_nodes, dim_out), T, or None
        What forward wrote; needed for Std, not read otherwise.

    Raises
    ------
    ArgumentError
        As in forward.

    Notes
    -----
    Dtypes, accumulation and determinism as in forward. Scratch too, and the reverse graph.
    Source: Hamilton et al. 2017, arXiv:1706.02216; var and std: Corso et al. 2020, arXiv:2004.05718
    """
    given = {
        "grad_input": grad_input,
        "grad_output": grad_output,
        "input_embedding": input_embedding,
        "output_embedding": output_embedding,
        EXTREMA: output_extrema_location,
    }
    backward(AGG_CONCAT_N2N, _N2N, given, graph, aggregation_operation, stream_id)


def agg_concat_e2n_fwd(
    output_embedding: Any,
    input_edge_embedding: Any,
    input_node_embedding: Any,
    graph: Graph,
    aggregation_operation: AggOp | str = AggOp.Sum,
    output_extrema_location: Any = None,
    stream_id: int = 0,
) -> None:
    r"""Aggregate the features of edges and append those of the destination.

    .. math:: y_i = [\, \operatorname{op}_{e = (j \to i)} h_{m(e)} \,|\, x_i \,]

    Parameters
    ----------
    output_embedding : array (n_dst_nodes, dim_out), T
        Written, not accumulated into; ``dim_out = dim_edge + dim_node``.
    input_edge_embedding : array (n_indices, dim_edge), T
        Features of the edges, by edge id (see `agg_simple_e2n_fwd`).
    input_node_embedding : array (n_dst_nodes, dim_node), T
        Features of the destinations.
    graph : csc, bipartite_csc, csc_hg or bipartite_csc_hg, int32 or int64
        As in `agg_simple_n2n_fwd`.
    aggregation_operation, stream_id
        As in `agg_simple_n2n_fwd`.
    output_extrema_location : array (n_dst_nodes, dim_edge), Idx, or None
        Written for Min and Max, and needed there: CSC position of the winner, -1 for none. Has to
        be None for the others.

    Raises
    ------
    ArgumentError
        As in `agg_simple_n2n_fwd`.

    Notes
    -----
    Dtypes (float16, bfloat16, float32, float64), accumulation and ties as in `agg_simple_n2n_fwd`.
    A destination without in-edges gets 0 where it aggregates, its own features still.
    Determinism: run-to-run, bitwise. Scratch: partial sums of long rows; Var and Std: the means.
    Source: Hamilton et al. 2017, arXiv:1706.02216; var and std: Corso et al. 2020, arXiv:2004.05718
    """
    given = {
        "output_embedding": output_embedding,
        "input_edge_embedding": input_edge_embedding,
        "input_node_embedding": input_node_embedding,
        EXTREMA: output_extrema_location,
    }
    forward(AGG_CONCAT_E2N, _E2N, given, graph, aggregation_operation, stream_id)


def agg_concat_e2n_bwd(
    grad_input_edge: Any,
    grad_input_node: Any,
    grad_output: Any,
    graph: Graph,
    dim_edge: int,
    dim_node: int,
    aggregation_operation: AggOp | str = AggOp.Sum,
    output_extrema_location: Any = None,
    stream_id: int = 0,
    *,
    input_edge_embedding: Any = None,
    output_embedding: Any = None,
) -> None:
    r"""Write the gradients of `agg_concat_e2n_fwd` that are asked for.

    .. math:: \bar h_{m(e)} = \frac{\partial y_i}{\partial h_{m(e)}} g_i, \quad \bar x_i = g^{own}_i

    The factors are those of `agg_simple_n2n_bwd`.

    Parameters
    ----------
    grad_input_edge : array (n_indices, dim_edge), T, or None
        Written, by edge id.
    grad_input_node : array (n_dst_nodes, dim_node), T, or None
        Written.
    grad_output : array (n_dst_nodes, dim_out), T
        Gradient of the output.
    graph, aggregation_operation, stream_id
        As in forward.
    dim_edge, dim_node : int
        Widths of the two inputs.
    output_extrema_location : array (n_dst_nodes, dim_edge), Idx, or None
        What forward wrote.
    input_edge_embedding : array (n_indices, dim_edge), T, or None
        As in forward; needed for Var and Std, not read otherwise.
    output_embedding : array (n_dst_nodes, dim_out), T, or None
        What forward wrote; needed for Std, not read otherwise.

    Raises
    ------
    ArgumentError
        As in forward.

    Notes
    -----
    Dtypes, accumulation and determinism as in forward. Scratch too, and the reverse graph.
    Source: Hamilton et al. 2017, arXiv:1706.02216; var and std: Corso et al. 2020, arXiv:2004.05718
    """
    given = {
        "grad_input_edge": grad_input_edge,
        "grad_input_node": grad_input_node,
        "grad_output": grad_output,
        "input_edge_embedding": input_edge_embedding,
        "output_embedding": output_embedding,
        EXTREMA: output_extrema_location,
    }
    backward(
        AGG_CONCAT_E2N, _E2N, given, graph, aggregation_operation, stream_id,
        dim_node=dim_node, dim_edge=dim_edge,
    )  # fmt: skip


def agg_concat_n2n_e2n_fwd(
    output_embedding: Any,
    input_node_embedding: Any,
    input_edge_embedding: Any,
    graph: Graph,
    dim_node: int,
    dim_edge: int,
    aggregation_operation: AggOp | str = AggOp.Sum,
    output_extrema_location: Any = None,
    stream_id: int = 0,
) -> None:
    r"""Aggregate the features of sources and of edges and append the own ones.

    .. math:: y_i = [\, \operatorname{op}_{e = (j \to i)} [\, x_j \,|\, h_{m(e)} \,] \,|\, x_i \,]

    Parameters
    ----------
    output_embedding : array (n_dst_nodes, dim_out), T
        Written, not accumulated into; ``dim_out = 2 * dim_node + dim_edge``.
    input_node_embedding : array (n_src_nodes, dim_node), T
        Features of the sources, those of the destinations first.
    input_edge_embedding : array (n_indices, dim_edge), T
        Features of the edges, by edge id (see `agg_simple_e2n_fwd`).
    graph : csc or csc_hg, int32 or int64
        As in `agg_simple_n2n_fwd`, but not bipartite: own rows are those of the first sources.
    dim_node, dim_edge : int
        Widths of the two inputs, checked against them.
    aggregation_operation, stream_id
        As in `agg_simple_n2n_fwd`.
    output_extrema_location : array (n_dst_nodes, dim_aggregated), Idx, or None
        Written for Min and Max, and needed there: CSC position of the winner, -1 for none;
        ``dim_aggregated = dim_node + dim_edge``. Has to be None for the others.

    Raises
    ------
    ArgumentError
        As in `agg_simple_n2n_fwd`.

    Notes
    -----
    Dtypes (float16, bfloat16, float32, float64), accumulation and ties as in `agg_simple_n2n_fwd`.
    A destination without in-edges gets 0 where it aggregates, its own features still.
    Determinism: run-to-run, bitwise. Scratch: partial sums of long rows; Var and Std: the means.
    Source: Hamilton et al. 2017, arXiv:1706.02216; var and std: Corso et al. 2020, arXiv:2004.05718
    """
    given = {
        "output_embedding": output_embedding,
        "input_node_embedding": input_node_embedding,
        "input_edge_embedding": input_edge_embedding,
        EXTREMA: output_extrema_location,
    }
    forward(
        AGG_CONCAT_N2N_E2N, _N2N_E2N, given, graph, aggregation_operation, stream_id,
        dim_node=dim_node, dim_edge=dim_edge,
    )  # fmt: skip


def agg_concat_n2n_e2n_bwd(
    grad_input_node: Any,
    grad_input_edge: Any,
    grad_output: Any,
    graph: Graph,
    dim_node: int,
    dim_edge: int,
    aggregation_operation: AggOp | str = AggOp.Sum,
    output_extrema_location: Any = None,
    stream_id: int = 0,
    *,
    input_node_embedding: Any = None,
    input_edge_embedding: Any = None,
    output_embedding: Any = None,
) -> None:
    r"""Write the gradients of `agg_concat_n2n_e2n_fwd` that are asked for.

    .. math:: \bar x_j = \sum_{e = (j \to i)} \frac{\partial y_i}{\partial x_j} g_i + g^{own}_j, \;
              \bar h_{m(e)} = \frac{\partial y_i}{\partial h_{m(e)}} g_i

    The factors are those of `agg_simple_n2n_bwd`; the own part is added to the own row.

    Parameters
    ----------
    grad_input_node : array (n_src_nodes, dim_node), T, or None
        Written.
    grad_input_edge : array (n_indices, dim_edge), T, or None
        Written, by edge id.
    grad_output : array (n_dst_nodes, dim_out), T
        Gradient of the output.
    graph, dim_node, dim_edge, aggregation_operation, stream_id
        As in forward.
    output_extrema_location : array (n_dst_nodes, dim_aggregated), Idx, or None
        What forward wrote.
    input_node_embedding : array (n_src_nodes, dim_node), T, or None
        As in forward; needed for the nodes' gradient of Var and Std, not read otherwise.
    input_edge_embedding : array (n_indices, dim_edge), T, or None
        As in forward; needed for the edges' gradient of Var and Std, not read otherwise.
    output_embedding : array (n_dst_nodes, dim_out), T, or None
        What forward wrote; needed for Std, not read otherwise.

    Raises
    ------
    ArgumentError
        As in forward.

    Notes
    -----
    Dtypes, accumulation and determinism as in forward. Scratch too, and the reverse graph.
    Source: Hamilton et al. 2017, arXiv:1706.02216; var and std: Corso et al. 2020, arXiv:2004.05718
    """
    given = {
        "grad_input_node": grad_input_node,
        "grad_input_edge": grad_input_edge,
        "grad_output": grad_output,
        "input_node_embedding": input_node_embedding,
        "input_edge_embedding": input_edge_embedding,
        "output_embedding": output_embedding,
        EXTREMA: output_extrema_location,
    }
    backward(
        AGG_CONCAT_N2N_E2N, _N2N_E2N, given, graph, aggregation_operation, stream_id,
        dim_node=dim_node, dim_edge=dim_edge,
    )  # fmt: skip
