"""R-GCN aggregation with basis regularisation: declaration, public functions, launch plans."""

from __future__ import annotations

from typing import Any

from edgegrad import _host
from edgegrad.backends import host
from edgegrad.errors import wrong_option, wrong_value
from edgegrad.graph import Graph, build
from edgegrad.operator import BATCH, Arg, Call, Operator, check
from edgegrad.operators import agg_hg_basis_plans

AGG_HG_BASIS = Operator(
    name="agg_hg_basis_n2n_post",
    outputs=(Arg("output_embedding", (BATCH, "n_dst_nodes", "dim_out"), grad="grad_output"),),
    inputs=(
        Arg("input_embedding", (BATCH, "n_src_nodes", "dim_in"), grad="grad_input"),
        Arg(
            "weights_combination",
            ("n_edge_types", "n_bases"),
            dtype="W",
            grad="grad_weights",
            optional=True,
        ),
        Arg(
            "edge_weight",
            ("n_indices",),
            dtype="E",
            grad="grad_edge_weight",
            optional=True,
            keyword=True,
        ),
    ),
    graphs=("csc_hg", "bipartite_csc_hg"),
    keeps=("input_embedding", "weights_combination", "edge_weight"),
    derived={
        "dim_out": lambda s: s["dim_in"] * (s.get("n_bases", s["n_edge_types"]) + s["concat_own"])
    },
    scratch="host: n_edge_types x n_bases sums per 8,192 edges, and the partial sums of long rows; "
    "GPU: at most n_dst_nodes x dim_out sums for grad_weights, and the partial sums of long rows "
    "(a row of the result per 128 edges of a row longer than that)",
    source="Schlichtkrull et al. 2018, arXiv:1703.06103, eq. 2-3",
)
OPERATORS = (AGG_HG_BASIS,)
KERNELS = agg_hg_basis_plans.KERNELS


def agg_hg_basis_n2n_post_fwd(
    output_embedding: Any,
    input_embedding: Any,
    weights_combination: Any,
    graph: Graph,
    concat_own: bool = False,
    norm_by_out_degree: bool = False,
    stream_id: int = 0,
    *,
    edge_weight: Any = None,
) -> None:
    r"""Aggregate neighbours by edge type and combine the types by basis weights.

    .. math:: S_{ir} = c_{ir} \sum_{e = (j \to i), t_e = r} w_e x_j, \qquad
              y_i = [\,A_{i0} | A_{i1} | \dots\,], \quad A_{ib} = \sum_r W_{rb} S_{ir}

    Without weights the blocks of y are the S of every type in turn. The R-GCN layer is then
    ``output @ weight.reshape(-1, out)``, with the root weight last when `concat_own` is set.

    Parameters
    ----------
    output_embedding : array ([batch], n_dst_nodes, dim_out), T
        Written, not accumulated into. ``dim_out = dim_in * n_bases`` with weights,
        ``dim_in * n_edge_types`` without, plus ``dim_in`` if `concat_own`.
    input_embedding : array ([batch], n_src_nodes, dim_in), T
        Features of the sources.
    weights_combination : array (n_edge_types, n_bases), W, or None
        Weight of every basis for every edge type.
    graph : csc_hg_int32, csc_hg_int64, bipartite_csc_hg_int32 or bipartite_csc_hg_int64
        Edges grouped by destination, on the device of the arrays.
    concat_own : bool
        Append the own row, not normalised, as the last ``dim_in`` columns; the own row of a
        destination is the source row of the same number, so the graph may not be bipartite.
    norm_by_out_degree : bool
        Divide each S_ir by the number of edges of type r that enter i (parallel edges counted):
        "out" means the output node.
    stream_id : int
        CUDA stream handle the work goes on; 0 is the legacy default stream. Nothing synchronises.
    edge_weight : array (n_indices), E, or None
        A factor per edge, in CSC order like `graph.indices`.

    Raises
    ------
    ArgumentError
        If an array, the graph or an option is not as described; `TypeError` for kinds and dtypes,
        `ValueError` for shapes, layouts, devices and values.

    Notes
    -----
    Dtypes: T is float16, bfloat16, float32 or float64; W and E are T, or float32 beside half types.
    Sums are kept in float32 (float64 for float64) and rounded once. Ids are int32 or int64.
    A destination without in-edges gets 0. Determinism: run-to-run, bitwise, for any number of
    threads. Scratch: partial sums of rows longer than 4,096 edges (host) or 128 edges (GPU), one
    row of the result for each such run of edges; on the host, for half types, one row per thread.
    The first call on a graph may build what it needs of it (groups by type, cuts of long rows).
    Source: Schlichtkrull et al. 2018, arXiv:1703.06103, eq. 2-3.
    """
    _check_options("agg_hg_basis_n2n_post_fwd", graph, concat_own)
    call = check(
        AGG_HG_BASIS,
        "fwd",
        graph,
        {
            "output_embedding": output_embedding,
            "input_embedding": input_embedding,
            "weights_combination": weights_combination,
            "edge_weight": edge_weight,
        },
        sizes={"concat_own": bool(concat_own)},
        stream_id=stream_id,
    )
    _check_bases(call)
    run = _host_fwd if call.on_host else agg_hg_basis_plans.forward
    run(call, graph, bool(concat_own), bool(norm_by_out_degree), stream_id)


def agg_hg_basis_n2n_post_bwd(
    grad_input: Any,
    grad_weights: Any,
    grad_output: Any,
    input_embedding: Any,
    weights_combination: Any,
    graph: Graph,
    concat_own: bool = False,
    norm_by_out_degree: bool = False,
    stream_id: int = 0,
    *,
    edge_weight: Any = None,
    grad_edge_weight: Any = None,
) -> None:
    r"""Write the gradients of `agg_hg_basis_n2n_post_fwd` that are asked for.

    With g = `grad_output` cut into blocks G like the output, O its own block:

    .. math:: P_{ir} = \sum_b W_{rb} G_{ib}, \quad
              \bar x_j = \sum_{e = (j \to i)} c_{i t_e} w_e P_{i t_e} + O_j, \quad
              \bar W_{rb} = \sum_i \langle G_{ib}, S_{ir} \rangle, \quad
              \bar w_e = c_{i t_e} \langle x_j, P_{i t_e} \rangle

    Parameters
    ----------
    grad_input : array ([batch], n_src_nodes, dim_in), T, or None
        Written; rows that are nobody's source and no destination get 0.
    grad_weights : array (n_edge_types, n_bases), W, or None
        Written; a type without edges gets a zero row. Summed over the batch. Needs
        `weights_combination`.
    grad_output : array ([batch], n_dst_nodes, dim_out), T
        Gradient of the output.
    input_embedding : array ([batch], n_src_nodes, dim_in), T
        As in forward.
    weights_combination : array (n_edge_types, n_bases), W, or None
        As in forward.
    graph : csc_hg_int32, csc_hg_int64, bipartite_csc_hg_int32 or bipartite_csc_hg_int64
        The graph of the forward.
    concat_own, norm_by_out_degree, stream_id
        As in forward.
    edge_weight : array (n_indices), E, or None
        As in forward.
    grad_edge_weight : array (n_indices), E, or None
        Written, in CSC order; summed over the batch.

    Raises
    ------
    ArgumentError
        As in forward.

    Notes
    -----
    Dtypes, accumulation and determinism as in forward: `grad_input` gathers over the reverse graph,
    built on first need; `grad_weights` is added up in two stages of fixed order. All gradients
    None: nothing is done. Scratch beyond forward's: on the host one float64 matrix like
    `grad_weights` per run of edges, at most 128 of them; on a GPU one such matrix of accumulators
    per team of threads, together at most as large as `grad_output`.
    Second derivatives are these two functions again: the operator is linear in x and in W.
    Source: Schlichtkrull et al. 2018, arXiv:1703.06103, eq. 2-3.
    """
    where = "agg_hg_basis_n2n_post_bwd"
    _check_options(where, graph, concat_own)
    if grad_weights is not None and weights_combination is None:
        raise wrong_value(
            where, "grad_weights", "an array", "None, since `weights_combination` is None"
        )
    call = check(
        AGG_HG_BASIS,
        "bwd",
        graph,
        {
            "grad_input": grad_input,
            "grad_weights": grad_weights,
            "grad_edge_weight": grad_edge_weight,
            "grad_output": grad_output,
            "input_embedding": input_embedding,
            "weights_combination": weights_combination,
            "edge_weight": edge_weight,
        },
        sizes={"concat_own": bool(concat_own)},
        stream_id=stream_id,
    )
    _check_bases(call)
    if grad_input is None and grad_weights is None and grad_edge_weight is None:
        return
    run = _host_bwd if call.on_host else agg_hg_basis_plans.backward
    run(call, graph, bool(concat_own), bool(norm_by_out_degree), stream_id)


def _check_options(where: str, graph: Any, concat_own: bool) -> None:
    if concat_own and "bipartite" in getattr(graph, "kind", ""):
        raise wrong_option(
            where, "concat_own", concat_own, "False, since a bipartite graph has no own rows"
        )


def _check_bases(call: Call) -> None:
    if call.sizes.get("n_bases", 1) == 0:
        raise wrong_value(call.where, "weights_combination", "n_bases = 0", "at least one basis")


# ---- host


def _host_fwd(call: Call, graph: Graph, concat_own: bool, norm: bool, _: int) -> None:
    a = call.arrays
    output, x, weights, edge_weight = (
        a["output_embedding"],
        a["input_embedding"],
        a["weights_combination"],
        a["edge_weight"],
    )
    type_degree = build.type_groups(graph).type_degree if norm else None
    if weights is not None:
        cut = build.pieces(graph, "rows", graph.offsets, host.PIECE_EDGES)
        _host.agg_hg_basis_forward(
            output, x, weights, edge_weight, graph, type_degree, concat_own,
            cut.limit, cut.row, cut.begin, cut.end,
        )  # fmt: skip
        return
    groups = build.type_groups(graph)
    cut = build.pieces(graph, "groups", groups.offsets, host.PIECE_EDGES)
    _host.agg_hg_basis_forward_by_type(
        output, x, edge_weight, graph, type_degree, concat_own,
        groups.offsets, groups.location, groups.order, cut.limit, cut.row, cut.begin, cut.end,
    )  # fmt: skip


def _host_bwd(call: Call, graph: Graph, concat_own: bool, norm: bool, _: int) -> None:
    a = call.arrays
    type_degree = build.type_groups(graph).type_degree if norm else None
    common = (a["weights_combination"], a["edge_weight"], graph, type_degree)
    if a["grad_input"] is not None:
        rev = build.reverse(graph)
        cut = build.pieces(graph, "reverse", rev.offsets, host.PIECE_EDGES)
        _host.agg_hg_basis_grad_input(
            a["grad_input"], a["grad_output"], *common, concat_own,
            rev.offsets, rev.dst, rev.position, cut.limit, cut.row, cut.begin, cut.end,
        )  # fmt: skip
    if a["grad_weights"] is not None or a["grad_edge_weight"] is not None:
        _host.agg_hg_basis_grad_parameters(
            a["grad_weights"], a["grad_edge_weight"], a["grad_output"], a["input_embedding"],
            *common,
        )  # fmt: skip
