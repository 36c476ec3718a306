"""Aggregation of neighbours times edge weights, without and with the own features appended."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from edgegrad.errors import wrong_type
from edgegrad.graph import Graph
from edgegrad.interop import ArrayView
from edgegrad.operator import BATCH, Arg, Operator, check
from edgegrad.operators import per_edge
from edgegrad.operators.agg_op import BASIC, AggOp, agg_op, check_extrema
from edgegrad.operators.aggregate import EXTREMA, GRAPHS, extrema_arg
from edgegrad.operators.edges import incoming, outgoing
from edgegrad.operators.gather_reduce import aggregate, back, copy_rows, grad_nodes, row_sums

AGG_WEIGHTED_N2N = Operator(
    name="agg_weighted_n2n",
    outputs=(Arg("output_embedding", (BATCH, "n_dst_nodes", "dim"), grad="grad_output"),),
    inputs=(
        Arg("input_embedding", (BATCH, "n_src_nodes", "dim"), grad="grad_input"),
        Arg("edge_weight", ("n_indices",), dtype="E", grad="grad_edge_weight"),
    ),
    graphs=GRAPHS,
    keeps=("edge_weight", "input_embedding"),
    may_keep=("output_embedding",),
    saved=(
        extrema_arg(BATCH, "n_dst_nodes", "dim"),
        Arg("node_degree", ("n_dst_nodes",), dtype="E", optional=True, keyword=True),
    ),
    source="Kipf & Welling 2017, arXiv:1609.02907",
    scratch="partial sums of long rows; Mean: n_dst_nodes accumulators",
)
AGG_CONCAT_WEIGHTED_N2N = replace(
    AGG_WEIGHTED_N2N,
    name="agg_concat_weighted_n2n",
    outputs=(Arg("output_embedding", (BATCH, "n_dst_nodes", "dim_out"), grad="grad_output"),),
    graphs=("csc", "csc_hg"),
    derived={"dim_out": lambda s: 2 * s["dim"]},
)
OPERATORS = (AGG_WEIGHTED_N2N, AGG_CONCAT_WEIGHTED_N2N)


def agg_weighted_n2n_fwd(
    output_embedding: Any,
    input_embedding: Any,
    edge_weight: Any,
    graph: Graph,
    aggregation_operation: AggOp | str = AggOp.Sum,
    output_extrema_location: Any = None,
    node_degree: Any = None,
    stream_id: int = 0,
) -> None:
    r"""Aggregate the features of sources, each times the weight of its edge.

    .. math:: y_i = \operatorname{op}_{e = (j \to i)} w_e x_j, \qquad
              y_i = \frac{1}{D_i} \sum_e w_e x_j, \; D_i = \sum_e w_e \; \text{for Mean}

    Parameters
    ----------
    output_embedding : array ([batch], n_dst_nodes, dim), T
        Written, not accumulated into.
    input_embedding : array ([batch], n_src_nodes, dim), T
        Features of the sources.
    edge_weight : array (n_indices), E
        Weights in CSC order, like `graph.indices`.
    graph : csc, bipartite_csc, csc_hg or bipartite_csc_hg, int32 or int64
        Edges grouped by destination, on the device of the arrays; edge types are not looked at.
    aggregation_operation : AggOp or str
        Sum, Mean (the weighted mean), Min or Max of the products.
    output_extrema_location : array ([batch], n_dst_nodes, dim), Idx, or None
        Written for Min and Max, and needed there: CSC position of the winner, -1 for none. Has to
        be None for the others.
    node_degree : array (n_dst_nodes), E, or None
        Written: the sums of weights D.
    stream_id : int
        CUDA stream handle the work goes on; 0 is the legacy default stream. Nothing synchronises.

    Raises
    ------
    ArgumentError
        If an array, the graph or an option is not as described; `TypeError` for kinds and dtypes,
        `ValueError` for shapes, layouts, devices and values.

    Notes
    -----
    Dtypes: T is float16, bfloat16, float32 or float64; E is T, or float32 beside half types. Sums
    are kept in float32 (float64 for float64) and rounded once. Ids are int32 or int64. A
    destination without in-edges gets 0, and so does a mean whose weights add up to 0, which passes
    no gradient. Ties and NaN as in `agg_simple_n2n_fwd`. Determinism: run-to-run, bitwise, for any
    number of threads. Scratch: partial sums of rows longer than 4,096 edges (host) or 512 edges
    (GPU); Mean: n_dst_nodes accumulators.
    Source: Kipf & Welling 2017, arXiv:1609.02907
    """
    given = {
        "output_embedding": output_embedding,
        "input_embedding": input_embedding,
        "edge_weight": edge_weight,
        EXTREMA: output_extrema_location,
        "node_degree": node_degree,
    }
    _forward(AGG_WEIGHTED_N2N, given, graph, aggregation_operation, stream_id)


def agg_weighted_n2n_bwd(
    grad_input: Any,
    grad_edge_weight: Any,
    grad_output: Any,
    edge_weight: Any,
    input_embedding: Any,
    graph: Graph,
    aggregation_operation: AggOp | str = AggOp.Sum,
    output_embedding: Any = None,
    output_extrema_location: Any = None,
    node_degree: Any = None,
    stream_id: int = 0,
) -> None:
    r"""Write the gradients of `agg_weighted_n2n_fwd` that are asked for.

    .. math:: \bar x_j = \sum_{e = (j \to i)} k_i w_e g_i, \qquad
              \bar w_e = k_i \langle g_i, x_j - m_i \rangle

    For Sum k is 1 and m is 0, for Mean k_i = 1 / D_i (0 where D_i is 0) and m_i = y_i, for Min and
    Max both run over the columns that e won, with k = 1 and m = 0.

    Parameters
    ----------
    grad_input : array ([batch], n_src_nodes, dim), T, or None
        Written.
    grad_edge_weight : array (n_indices), E, or None
        Written, in CSC order; summed over the batch.
    grad_output : array ([batch], n_dst_nodes, dim), T
        Gradient of the output.
    edge_weight : array (n_indices), E
        As in forward.
    input_embedding : array ([batch], n_src_nodes, dim), T
        As in forward.
    graph, aggregation_operation, stream_id
        As in forward.
    output_embedding : array ([batch], n_dst_nodes, dim), T, or None
        What forward wrote; needed for the weights' gradient of Mean, not read otherwise.
    output_extrema_location : array ([batch], n_dst_nodes, dim), Idx, or None
        What forward wrote.
    node_degree : array (n_dst_nodes), E, or None
        What forward wrote; for Mean it is computed anew if it is None.

    Raises
    ------
    ArgumentError
        As in forward.

    Notes
    -----
    Dtypes, accumulation and determinism as in forward; the gradient of the input gathers over the
    reverse graph, built on first need. Scratch as in forward.
    Source: Kipf & Welling 2017, arXiv:1609.02907
    """
    given = {
        "grad_input": grad_input,
        "grad_edge_weight": grad_edge_weight,
        "grad_output": grad_output,
        "edge_weight": edge_weight,
        "input_embedding": input_embedding,
        "output_embedding": output_embedding,
        EXTREMA: output_extrema_location,
        "node_degree": node_degree,
    }
    _backward(AGG_WEIGHTED_N2N, given, graph, aggregation_operation, stream_id)


def agg_concat_weighted_n2n_fwd(
    output_embedding: Any,
    input_embedding: Any,
    edge_weight: Any,
    graph: Graph,
    aggregation_operation: AggOp | str = AggOp.Sum,
    output_extrema_location: Any = None,
    node_degree: Any = None,
    stream_id: int = 0,
) -> None:
    r"""Aggregate as `agg_weighted_n2n_fwd` does and append the own features, not weighted.

    .. math:: y_i = [\, \operatorname{op}_{e = (j \to i)} w_e x_j \,|\, x_i \,]

    Parameters
    ----------
    output_embedding : array ([batch], n_dst_nodes, dim_out), T
        Written, not accumulated into; ``dim_out = 2 * dim``.
    input_embedding : array ([batch], n_src_nodes, dim), T
        Features of the sources, those of the destinations first.
    edge_weight : array (n_indices), E
        Weights in CSC order, like `graph.indices`.
    graph : csc or csc_hg, int32 or int64
        As in `agg_weighted_n2n_fwd`; not bipartite, since a destination's own row is the source row
        of the same number.
    aggregation_operation : AggOp or str
        As in `agg_weighted_n2n_fwd`.
    output_extrema_location : array ([batch], n_dst_nodes, dim), Idx, or None
        As in `agg_weighted_n2n_fwd`.
    node_degree : array (n_dst_nodes), E, or None
        Written: the sums of weights D.
    stream_id : int
        As in `agg_weighted_n2n_fwd`.

    Raises
    ------
    ArgumentError
        As in `agg_weighted_n2n_fwd`.

    Notes
    -----
    Dtypes (float16, bfloat16, float32, float64; E may be float32 beside half types), accumulation
    and ties as in `agg_weighted_n2n_fwd`. A destination without in-edges gets 0 where it
    aggregates, its own features still. Determinism: run-to-run, bitwise. Scratch: as there.
    Source: Kipf & Welling 2017, arXiv:1609.02907
    """
    given = {
        "output_embedding": output_embedding,
        "input_embedding": input_embedding,
        "edge_weight": edge_weight,
        EXTREMA: output_extrema_location,
        "node_degree": node_degree,
    }
    _forward(AGG_CONCAT_WEIGHTED_N2N, given, graph, aggregation_operation, stream_id)


def agg_concat_weighted_n2n_bwd(
    grad_input: Any,
    grad_edge_weight: Any,
    grad_output: Any,
    edge_weight: Any,
    input_embedding: Any,
    graph: Graph,
    aggregation_operation: AggOp | str = AggOp.Sum,
    output_embedding: Any = None,
    output_extrema_location: Any = None,
    node_degree: Any = None,
    stream_id: int = 0,
) -> None:
    r"""Write the gradients of `agg_concat_weighted_n2n_fwd` that are asked for.

    .. math:: \bar x_j = \sum_{e = (j \to i)} k_i w_e g_i + g^{own}_j, \qquad
              \bar w_e = k_i \langle g_i, x_j - m_i \rangle

    k and m are those of `agg_weighted_n2n_bwd`; the own part is added to the own row.

    Parameters
    ----------
    grad_input : array ([batch], n_src_nodes, dim), T, or None
        Written.
    grad_edge_weight : array (n_indices), E, or None
        Written, in CSC order; summed over the batch.
    grad_output : array ([batch], n_dst_nodes, dim_out), T
        Gradient of the output.
    edge_weight : array (n_indices), E
        As in forward.
    input_embedding : array ([batch], n_src_nodes, dim), T
        As in forward.
    graph, aggregation_operation, stream_id
        As in forward.
    output_embedding : array ([batch], n_dst_nodes, dim_out), T, or None
        What forward wrote; needed for the weights' gradient of Mean, not read otherwise.
    output_extrema_location : array ([batch], n_dst_nodes, dim), Idx, or None
        What forward wrote.
    node_degree : array (n_dst_nodes), E, or None
        What forward wrote; for Mean it is computed anew if it is None.

    Raises
    ------
    ArgumentError
        As in forward.

    Notes
    -----
    Dtypes, accumulation and determinism as in forward. Scratch too; the reverse graph is built
    on first need.
    Source: Kipf & Welling 2017, arXiv:1609.02907
    """
    given = {
        "grad_input": grad_input,
        "grad_edge_weight": grad_edge_weight,
        "grad_output": grad_output,
        "edge_weight": edge_weight,
        "input_embedding": input_embedding,
        "output_embedding": output_embedding,
        EXTREMA: output_extrema_location,
        "node_degree": node_degree,
    }
    _backward(AGG_CONCAT_WEIGHTED_N2N, given, graph, aggregation_operation, stream_id)


def _forward(
    operator: Operator,
    given: dict[str, Any],
    graph: Graph,
    operation: AggOp | str,
    stream_id: int,
) -> None:
    where = f"{operator.name}_fwd"
    op = agg_op(where, "aggregation_operation", operation, BASIC)
    check_extrema(where, EXTREMA, op, given[EXTREMA])
    call = check(operator, "fwd", graph, given, stream_id=stream_id)
    a, dim, x = call.arrays, call.sizes["dim"], call.arrays["input_embedding"]
    weight, degree = a["edge_weight"], a["node_degree"]
    # Sums of half type would be rounded before they divide.
    divisor = None if degree is None or degree.itemsize == 2 else degree
    if degree is not None:
        row_sums(incoming(graph, "position", stream_id), weight, stream_id, degree)
    if op is AggOp.Mean and divisor is None:
        divisor = row_sums(incoming(graph, "position", stream_id), weight, stream_id)
    output, edges = a["output_embedding"], incoming(graph, "node", stream_id)
    aggregate(
        op, edges, output.columns(0, dim), x, stream_id,
        extrema=a[EXTREMA], weight=weight, divide=divisor,
    )  # fmt: skip
    if operator is AGG_CONCAT_WEIGHTED_N2N:
        copy_rows(output.columns(dim, dim), x, graph, stream_id)


def _backward(
    operator: Operator,
    given: dict[str, Any],
    graph: Graph,
    operation: AggOp | str,
    stream_id: int,
) -> None:
    where = f"{operator.name}_bwd"
    op = agg_op(where, "aggregation_operation", operation, BASIC)
    check_extrema(where, EXTREMA, op, given[EXTREMA])
    needs_mean = op is AggOp.Mean and given["grad_edge_weight"] is not None
    if needs_mean and given["output_embedding"] is None:
        expected = f"an array, since the operation is {op}"
        raise wrong_type(where, "output_embedding", "type NoneType", expected)
    call = check(operator, "bwd", graph, given, stream_id=stream_id)
    if given["grad_input"] is None and given["grad_edge_weight"] is None:
        return
    a, dim = call.arrays, call.sizes["dim"]
    weight, divisor = a["edge_weight"], a["node_degree"]
    if op is AggOp.Mean and divisor is None:
        divisor = row_sums(incoming(graph, "position", stream_id), weight, stream_id)
    edges, g = incoming(graph, "node", stream_id), a["grad_output"].columns(0, dim)
    kept = back(op, edges, g, stream_id, extrema=a[EXTREMA], divide=divisor)
    if a["grad_input"] is not None:
        own: ArrayView | None = None
        if operator is AGG_CONCAT_WEIGHTED_N2N:
            own = a["grad_output"].columns(dim, dim)
        out_of = outgoing(graph, "node", stream_id)
        grad_nodes(
            out_of, a["grad_input"], g, kept, stream_id,
            weight=weight, own=own, own_rows=graph.n_dst_nodes,
        )  # fmt: skip
    if a["grad_edge_weight"] is not None:
        mean = a["output_embedding"].columns(0, dim) if needs_mean else None
        per_edge.grad_factor(
            edges, a["grad_edge_weight"], g, a["input_embedding"], stream_id,
            extrema=kept.extrema, divide=kept.divide, mean=mean,
        )  # fmt: skip
