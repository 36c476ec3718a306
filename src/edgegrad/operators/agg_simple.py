"""Aggregation of neighbours, of edge features, or of both: sum, mean, min, max, var, std."""

from __future__ import annotations

from typing import Any

from edgegrad.graph import Graph
from edgegrad.operator import BATCH, Arg, Operator
from edgegrad.operators.agg_op import AggOp
from edgegrad.operators.aggregate import (
    EXTREMA,
    GRAPHS,
    SCRATCH,
    SOURCE,
    Layout,
    backward,
    extrema_arg,
    forward,
)

AGG_SIMPLE_N2N = Operator(
    name="agg_simple_n2n",
    outputs=(Arg("output_embedding", (BATCH, "n_dst_nodes", "dim"), grad="grad_output"),),
    inputs=(Arg("input_embedding", (BATCH, "n_src_nodes", "dim"), grad="grad_input"),),
    graphs=GRAPHS,
    saved=(extrema_arg(BATCH, "n_dst_nodes", "dim"),),
    may_keep=("input_embedding", "output_embedding"),
    source=SOURCE,
    scratch=SCRATCH,
)
AGG_SIMPLE_E2N = Operator(
    name="agg_simple_e2n",
    outputs=(Arg("output_embedding", ("n_dst_nodes", "dim"), grad="grad_output"),),
    inputs=(Arg("input_embedding", ("n_indices", "dim"), grad="grad_input"),),
    graphs=GRAPHS,
    saved=(extrema_arg("n_dst_nodes", "dim"),),
    may_keep=("input_embedding", "output_embedding"),
    source=SOURCE,
    scratch=SCRATCH,
)
AGG_SIMPLE_N2N_E2N = Operator(
    name="agg_simple_n2n_e2n",
    outputs=(Arg("output_embedding", ("n_dst_nodes", "dim_out"), grad="grad_output"),),
    inputs=(
        Arg("input_node_embedding", ("n_src_nodes", "dim_node"), grad="grad_input_node"),
        Arg("input_edge_embedding", ("n_indices", "dim_edge"), grad="grad_input_edge"),
    ),
    graphs=GRAPHS,
    saved=(extrema_arg("n_dst_nodes", "dim_out"),),
    may_keep=("input_node_embedding", "input_edge_embedding", "output_embedding"),
    derived={"dim_out": lambda s: s["dim_node"] + s["dim_edge"]},
    source=SOURCE,
    scratch=SCRATCH,
)
OPERATORS = (AGG_SIMPLE_N2N, AGG_SIMPLE_E2N, AGG_SIMPLE_N2N_E2N)

_N2N = Layout(node="input_embedding")
_E2N = Layout(edge="input_embedding")
_N2N_E2N = Layout(node="input_node_embedding", edge="input_edge_embedding")


def agg_simple_n2n_fwd(
    output_embedding: Any,
    input_embedding: Any,
    graph: Graph,
    aggregation_operation: AggOp | str = AggOp.Sum,
    output_extrema_location: Any = None,
    stream_id: int = 0,
) -> None:
    r"""Aggregate the features of the sources of every destination's edges.

    .. math:: y_i = \operatorname{op}_{e = (j \to i)} x_j

    Parameters
    ----------
    output_embedding : array ([batch], n_dst_nodes, dim), T
        Written, not accumulated into.
    input_embedding : array ([batch], n_src_nodes, dim), T
        Features of the sources.
    graph : csc, bipartite_csc, csc_hg or bipartite_csc_hg, int32 or int64
        Edges grouped by destination, on the device of the arrays; edge types are not looked at.
    aggregation_operation : AggOp or str
        Sum, Mean (by the in-degree), Min, Max, Var (population variance) or Std.
    output_extrema_location : array ([batch], n_dst_nodes, dim), Idx, or None
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
    Dtypes: T is float16, bfloat16, float32 or float64; sums are kept in float32 (float64 for
    float64) and rounded once, after a division. Ids are int32 or int64. A destination without
    in-edges gets 0 from every operation. Min and Max have one winner, the lowest CSC position among
    equals; a NaN wins, -inf is a value like others. Determinism: run-to-run, bitwise, for any
    number of threads. Scratch: partial sums of rows longer than 4,096 edges (host) or 512 edges
    (GPU), one row of the result for each such run of edges; Var and Std: the means, n_dst_nodes x
    dim. Reverse graph and cuts of long rows are built on first need and kept on the graph.
    Source: Hamilton et al. 2017, arXiv:1706.02216; var and std: Corso et al. 2020, arXiv:2004.05718
    """
    given = {
        "output_embedding": output_embedding,
        "input_embedding": input_embedding,
        EXTREMA: output_extrema_location,
    }
    forward(AGG_SIMPLE_N2N, _N2N, given, graph, aggregation_operation, stream_id)


def agg_simple_n2n_bwd(
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
    r"""Write the gradient of `agg_simple_n2n_fwd`.

    .. math:: \bar x_j = \sum_{e = (j \to i)} \frac{\partial y_i}{\partial v_e} g_i

    The factor is 1 for Sum, 1 / n_i for Mean (n_i the in-degree), 1 in the columns that e won for
    Min and Max, 2 (x_j - m_i) / n_i for Var (m_i the mean), (x_j - m_i) / (n_i y_i) for Std, which
    passes nothing where y_i is 0.

    Parameters
    ----------
    grad_input : array ([batch], n_src_nodes, dim), T, or None
        Written; None: nothing is done.
    grad_output : array ([batch], n_dst_nodes, dim), T
        Gradient of the output.
    graph, aggregation_operation, stream_id
        As in forward.
    output_extrema_location : array ([batch], n_dst_nodes, dim), Idx, or None
        What forward wrote.
    input_embedding : array ([batch], n_src_nodes, dim), T, or None
        As in forward; needed for Var and Std, not read otherwise.
    output_embedding : array ([batch], n_dst_nodes, dim), T, or None
        What forward wrote; needed for Std, not read otherwise.

    Raises
    ------
    ArgumentError
        As in forward.

    Notes
    -----
    Dtypes, accumulation and determinism as in forward: the gradient gathers over the reverse graph,
    built on first need. Scratch as in forward, with sources for destinations.
    Source: Hamilton et al. 2017, arXiv:1706.02216; var and std: Corso et al. 2020, arXiv:2004.05718
    """
    given = {
        "grad_input": grad_input,
        "grad_output": grad_output,
        "input_embedding": input_embedding,
        "output_embedding": output_embedding,
        EXTREMA: output_extrema_location,
    }
    backward(AGG_SIMPLE_N2N, _N2N, given, graph, aggregation_operation, stream_id)


def agg_simple_e2n_fwd(
    output_embedding: Any,
    input_embedding: Any,
    graph: Graph,
    aggregation_operation: AggOp | str = AggOp.Sum,
    output_extrema_location: Any = None,
    stream_id: int = 0,
) -> None:
    r"""Aggregate the features of every destination's edges.

    .. math:: y_i = \operatorname{op}_{e = (j \to i)} x_{m(e)}

    Parameters
    ----------
    output_embedding : array (n_dst_nodes, dim), T
        Written, not accumulated into.
    input_embedding : array (n_indices, dim), T
        Features of the edges, by edge id: edge e of the graph has row m(e) = `map_csc_to_coo[e]`,
        or e without that map.
    graph : csc, bipartite_csc, csc_hg or bipartite_csc_hg, int32 or int64
        As in `agg_simple_n2n_fwd`.
    aggregation_operation : AggOp or str
        As in `agg_simple_n2n_fwd`.
    output_extrema_location : array (n_dst_nodes, dim), Idx, or None
        Written for Min and Max, and needed there: CSC position (not edge id) of the winner, -1 for
        none. Has to be None for the others.
    stream_id : int
        As in `agg_simple_n2n_fwd`.

    Raises
    ------
    ArgumentError
        As in `agg_simple_n2n_fwd`.

    Notes
    -----
    Dtypes (float16, bfloat16, float32, float64), accumulation, ties and scratch as in
    `agg_simple_n2n_fwd`. A destination without in-edges gets 0. Determinism: run-to-run, bitwise.
    Scratch: partial sums of long rows; Var and Std: the means, n_dst_nodes x dim.
    Source: Hamilton et al. 2017, arXiv:1706.02216; var and std: Corso et al. 2020, arXiv:2004.05718
    """
    given = {
        "output_embedding": output_embedding,
        "input_embedding": input_embedding,
        EXTREMA: output_extrema_location,
    }
    forward(AGG_SIMPLE_E2N, _E2N, given, graph, aggregation_operation, stream_id)


def agg_simple_e2n_bwd(
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
    r"""Write the gradient of `agg_simple_e2n_fwd`.

    .. math:: \bar x_{m(e)} = \frac{\partial y_i}{\partial x_{m(e)}} g_i, \qquad e = (j \to i)

    The factors are those of `agg_simple_n2n_bwd`.

    Parameters
    ----------
    grad_input : array (n_indices, dim), T, or None
        Written, by edge id; None: nothing is done.
    grad_output : array (n_dst_nodes, dim), T
        Gradient of the output.
    graph, aggregation_operation, stream_id
        As in forward.
    output_extrema_location : array (n_dst_nodes, dim), Idx, or None
        What forward wrote.
    input_embedding : array (n_indices, dim), T, or None
        As in forward; needed for Var and Std, not read otherwise.
    output_embedding : array (n_dst_nodes, dim), T, or None
        What forward wrote; needed for Std, not read otherwise.

    Raises
    ------
    ArgumentError
        As in forward.

    Notes
    -----
    Dtypes and determinism as in forward. Scratch: Var and Std: the means, n_dst_nodes x dim.
    Source: Hamilton et al. 2017, arXiv:1706.02216; var and std: Corso et al. 2020, arXiv:2004.05718
    """
    given = {
        "grad_input": grad_input,
        "grad_output": grad_output,
        "input_embedding": input_embedding,
        "output_embedding": output_embedding,
        EXTREMA: output_extrema_location,
    }
    backward(AGG_SIMPLE_E2N, _E2N, given, graph, aggregation_operation, stream_id)


def agg_simple_n2n_e2n_fwd(
    output_embedding: Any,
    input_node_embedding: Any,
    input_edge_embedding: Any,
    graph: Graph,
    aggregation_operation: AggOp | str = AggOp.Sum,
    output_extrema_location: Any = None,
    stream_id: int = 0,
) -> None:
    r"""Aggregate the features of sources and of edges, side by side.

    .. math:: y_i = \operatorname{op}_{e = (j \to i)} [\, x_j \,|\, h_{m(e)} \,]

    Parameters
    ----------
    output_embedding : array (n_dst_nodes, dim_out), T
        Written, not accumulated into; ``dim_out = dim_node + dim_edge``, nodes first.
    input_node_embedding : array (n_src_nodes, dim_node), T
        Features of the sources.
    input_edge_embedding : array (n_indices, dim_edge), T
        Features of the edges, by edge id (see `agg_simple_e2n_fwd`).
    graph : csc, bipartite_csc, csc_hg or bipartite_csc_hg, int32 or int64
        As in `agg_simple_n2n_fwd`.
    aggregation_operation : AggOp or str
        As in `agg_simple_n2n_fwd`.
    output_extrema_location : array (n_dst_nodes, dim_out), Idx, or None
        Written for Min and Max, and needed there: CSC position of the winner, -1 for none. Has to
        be None for the others.
    stream_id : int
        As in `agg_simple_n2n_fwd`.

    Raises
    ------
    ArgumentError
        As in `agg_simple_n2n_fwd`.

    Notes
    -----
    Dtypes (float16, bfloat16, float32, float64), accumulation, ties and scratch as in
    `agg_simple_n2n_fwd`. A destination without in-edges gets 0. Determinism: run-to-run, bitwise.
    Scratch: partial sums of long rows; Var and Std: the means, n_dst_nodes x dim_out.
    Source: Hamilton et al. 2017, arXiv:1706.02216; var and std: Corso et al. 2020, arXiv:2004.05718
    """
    given = {
        "output_embedding": output_embedding,
        "input_node_embedding": input_node_embedding,
        "input_edge_embedding": input_edge_embedding,
        EXTREMA: output_extrema_location,
    }
    forward(AGG_SIMPLE_N2N_E2N, _N2N_E2N, given, graph, aggregation_operation, stream_id)


def agg_simple_n2n_e2n_bwd(
    grad_input_node: Any,
    grad_input_edge: Any,
    grad_output: Any,
    graph: Graph,
    aggregation_operation: AggOp | str = AggOp.Sum,
    output_extrema_location: Any = None,
    stream_id: int = 0,
    *,
    input_node_embedding: Any = None,
    input_edge_embedding: Any = None,
    output_embedding: Any = None,
) -> None:
    r"""Write the gradients of `agg_simple_n2n_e2n_fwd` that are asked for.

    .. math:: \bar x_j = \sum_{e = (j \to i)} \frac{\partial y_i}{\partial x_j} g_i, \qquad
              \bar h_{m(e)} = \frac{\partial y_i}{\partial h_{m(e)}} g_i

    The factors are those of `agg_simple_n2n_bwd`.

    Parameters
    ----------
    grad_input_node : array (n_src_nodes, dim_node), T, or None
        Written.
    grad_input_edge : array (n_indices, dim_edge), T, or None
        Written, by edge id.
    grad_output : array (n_dst_nodes, dim_out), T
        Gradient of the output.
    graph, aggregation_operation, stream_id
        As in forward.
    output_extrema_location : array (n_dst_nodes, dim_out), Idx, or None
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
    Dtypes, accumulation and determinism as in forward. Scratch as in forward, with sources for
    destinations. The reverse graph is built on first need.
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
    backward(AGG_SIMPLE_N2N_E2N, _N2N_E2N, given, graph, aggregation_operation, stream_id)
