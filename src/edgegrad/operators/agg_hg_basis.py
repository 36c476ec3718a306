"""R-GCN aggregation with basis regularisation: declaration, public functions, launch plans."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from edgegrad import _host
from edgegrad.backends import cuda
from edgegrad.errors import wrong_option, wrong_value
from edgegrad.graph import Graph, build
from edgegrad.operator import BATCH, FLOATS, Arg, Call, Operator, check

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
    "(a row of the result per 512 edges of a row longer than that)",
    source="Schlichtkrull et al. 2018, arXiv:1703.06103, eq. 2-3",
)
OPERATORS = (AGG_HG_BASIS,)

# Rows with more edges are cut, so that one thread (or team) never holds up the others.
HOST_PIECE_EDGES = 4096
CUDA_PIECE_EDGES = 512


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
    T is float16, bfloat16, float32 or float64; W and E are T, or float32 beside half types. Sums
    are kept in float32 (float64 for float64) and rounded once. Ids are int32 or int64.
    A destination without in-edges gets 0. Determinism: run-to-run, bitwise, for any number of
    threads. Scratch: partial sums of rows longer than 4,096 edges (host) or 512 edges (GPU), one
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
    run = _host_fwd if call.on_host else _cuda_fwd
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
    run = _host_bwd if call.on_host else _cuda_bwd
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
        cut = build.pieces(graph, "rows", graph.offsets, HOST_PIECE_EDGES)
        _host.agg_hg_basis_forward(
            output, x, weights, edge_weight, graph, type_degree, concat_own,
            cut.limit, cut.row, cut.begin, cut.end,
        )  # fmt: skip
        return
    groups = build.type_groups(graph)
    cut = build.pieces(graph, "groups", groups.offsets, HOST_PIECE_EDGES)
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
        cut = build.pieces(graph, "reverse", rev.offsets, HOST_PIECE_EDGES)
        _host.agg_hg_basis_grad_input(
            a["grad_input"], a["grad_output"], *common, concat_own,
            rev.offsets, rev.dst, rev.position, cut.limit, cut.row, cut.begin, cut.end,
        )  # fmt: skip
    if a["grad_weights"] is not None or a["grad_edge_weight"] is not None:
        _host.agg_hg_basis_grad_parameters(
            a["grad_weights"], a["grad_edge_weight"], a["grad_output"], a["input_embedding"],
            *common,
        )  # fmt: skip


# ---- CUDA: see kernels/agg_hg_basis.cu for what the kernels expect of a launch

_SOURCE = "agg_hg_basis.cu"
_WIDE = [(t, i, v) for t in FLOATS for i in cuda.INDEX_DTYPES for v in cuda.vec_widths(t)]
KERNELS = tuple(
    (_SOURCE, name)
    for name in (
        *(cuda.instance("agg_hg_basis_fwd", *p) for p in _WIDE),
        *(cuda.instance("agg_hg_basis_fwd_by_type", *p) for p in _WIDE),
        *(cuda.instance("agg_hg_basis_own", t, v) for t in FLOATS for v in cuda.vec_widths(t)),
        *(cuda.instance("agg_hg_basis_grad_input", *p) for p in _WIDE),
        *(cuda.instance("agg_hg_basis_merge", t, i) for t in FLOATS for i in cuda.INDEX_DTYPES),
        *(cuda.instance("agg_hg_basis_grad_parameters", *p) for p in _WIDE),
        *(cuda.instance("agg_hg_basis_grad_weights", t) for t in FLOATS),
    )
)


def _cuda_fwd(call: Call, graph: Graph, concat_own: bool, norm: bool, stream_id: int) -> None:
    if call.arrays["weights_combination"] is None:
        groups = build.type_groups(graph, stream_id)
        cut = build.pieces(graph, "groups", groups.offsets, CUDA_PIECE_EDGES, stream_id)
        plan = _plan_fwd_by_type(call, graph, groups, cut, concat_own, norm)
    else:
        type_degree = build.type_groups(graph, stream_id).type_degree if norm else None
        cut = build.pieces(graph, "rows", graph.offsets, CUDA_PIECE_EDGES, stream_id)
        plan = _plan_fwd(call, graph, type_degree, cut, concat_own)
    cuda.run(plan, call.device, stream_id)


def _cuda_bwd(call: Call, graph: Graph, concat_own: bool, norm: bool, stream_id: int) -> None:
    type_degree = build.type_groups(graph, stream_id).type_degree if norm else None
    if call.arrays["grad_input"] is not None:
        rev = build.reverse(graph, stream_id)
        cut = build.pieces(graph, "reverse", rev.offsets, CUDA_PIECE_EDGES, stream_id)
        plan = _plan_grad_input(call, graph, rev, cut, type_degree, concat_own)
        cuda.run(plan, call.device, stream_id)
    if call.arrays["grad_weights"] is not None or call.arrays["grad_edge_weight"] is not None:
        cuda.run(_plan_grad_parameters(call, graph, type_degree), call.device, stream_id)


def _plan_fwd(
    call: Call, graph: Graph, type_degree: Any, cut: build.Pieces, concat_own: bool
) -> cuda.Plan:
    a, shape = call.arrays, _Shape(call)
    output, x = a["output_embedding"], a["input_embedding"]
    vec = cuda.vec_width(output.dtype, shape.dim, output, x)
    lanes = cuda.lanes(shape.dim, vec)
    bases = 2 if vec == 8 else 4  # kBases<VEC>
    tiles = -(-shape.dim // (lanes * vec)) * -(-shape.n_bases // bases)

    def launch(items: int, partials: Any, pieces: tuple[int, int, int]) -> cuda.Launch:
        return cuda.Launch(
            _SOURCE,
            cuda.instance("agg_hg_basis_fwd", output.dtype, graph.index_dtype, vec),
            grid=shape.grid(items, lanes, tiles),
            block=(lanes, cuda.BLOCK_THREADS // lanes),
            args=(
                *_rows(output), partials, *_rows(x), *_factors(a),
                graph.offsets.ptr, graph.indices.ptr, graph.edge_types.ptr,
                cuda.pointer(type_degree), *pieces, np.int64(items), np.int64(cut.limit),
                *shape.scalars("n_batch", "n_bases", "dim"),
            ),
        )  # fmt: skip

    width = shape.n_bases * shape.dim
    merge = _merge(shape, output, graph, cut, 0, graph.offsets, False, width)
    own = _plan_own(shape, output, x, 0, concat_own)
    return _with_pieces(shape, graph.n_dst_nodes, cut, launch, merge, width, own)


def _plan_fwd_by_type(
    call: Call,
    graph: Graph,
    groups: build.TypeGroups,
    cut: build.Pieces,
    concat_own: bool,
    norm: bool,
) -> cuda.Plan:
    a, shape = call.arrays, _Shape(call)
    output, x = a["output_embedding"], a["input_embedding"]
    vec = cuda.vec_width(output.dtype, shape.dim, output, x)
    lanes = cuda.lanes(shape.dim, vec)

    def launch(items: int, partials: Any, pieces: tuple[int, int, int]) -> cuda.Launch:
        return cuda.Launch(
            _SOURCE,
            cuda.instance("agg_hg_basis_fwd_by_type", output.dtype, graph.index_dtype, vec),
            grid=shape.grid(items, lanes, -(-shape.dim // (lanes * vec))),
            block=(lanes, cuda.BLOCK_THREADS // lanes),
            args=(
                *_rows(output), partials, *_rows(x), *_companion(a["edge_weight"]),
                groups.offsets.ptr, graph.indices.ptr, groups.order.ptr, groups.location.ptr,
                *pieces, np.int64(items), np.int64(cut.limit),
                *shape.scalars("n_batch", "n_types"), np.int32(norm), np.int32(shape.dim),
            ),
        )  # fmt: skip

    location = groups.location.ptr
    merge = _merge(shape, output, graph, cut, location, groups.offsets, norm, shape.dim)
    own = _plan_own(shape, output, x, shape.n_types * shape.dim, concat_own)
    return _with_pieces(shape, len(groups.location), cut, launch, merge, shape.dim, own)


def _with_pieces(
    shape: _Shape,
    rows: int,
    cut: build.Pieces,
    launch: Callable[[int, Any, tuple[int, int, int]], cuda.Launch],
    merge: cuda.Launch,
    width: int,
    before: tuple[cuda.Launch, ...] = (),
) -> cuda.Plan:
    """Launch a row-wise kernel over short rows, then over the pieces of long ones, and merge."""
    short = (*before, launch(rows, 0, (0, 0, 0)))
    n = len(cut.row)
    if n == 0:
        return cuda.Plan(short)
    pieces = launch(n, cuda.Scratch(), (cut.row.ptr, cut.begin.ptr, cut.end.ptr))
    scratch = shape.n_batch * n * width * shape.accumulator_size
    return cuda.Plan((*short, pieces, merge), scratch)


def _plan_own(
    shape: _Shape, output: Any, x: Any, zero_width: int, concat_own: bool
) -> tuple[cuda.Launch, ...]:
    """What no edge writes: zeros of absent types, and the own row."""
    own_width = shape.dim if concat_own else 0
    if zero_width + own_width == 0:
        return ()
    vec = cuda.vec_width(output.dtype, shape.dim, output, x)
    lanes = cuda.lanes(zero_width + own_width, vec)
    return (
        cuda.Launch(
            _SOURCE,
            cuda.instance("agg_hg_basis_own", output.dtype, vec),
            grid=shape.grid(shape.n_dst, lanes, -(-(zero_width + own_width) // (lanes * vec))),
            block=(lanes, cuda.BLOCK_THREADS // lanes),
            args=(
                *_rows(output), *_rows(x), np.int64(shape.n_dst), np.int32(shape.n_batch),
                np.int64(zero_width), np.int64(shape.n_blocks * shape.dim), np.int32(own_width),
            ),
        ),
    )  # fmt: skip


def _plan_grad_input(
    call: Call,
    graph: Graph,
    rev: build.Reverse,
    cut: build.Pieces,
    type_degree: Any,
    concat_own: bool,
) -> cuda.Plan:
    a, shape = call.arrays, _Shape(call)
    result, grad = a["grad_input"], a["grad_output"]
    vec = cuda.vec_width(result.dtype, shape.dim, result, grad)
    lanes = cuda.lanes(shape.dim, vec)

    def launch(items: int, partials: Any, pieces: tuple[int, int, int]) -> cuda.Launch:
        return cuda.Launch(
            _SOURCE,
            cuda.instance("agg_hg_basis_grad_input", result.dtype, graph.index_dtype, vec),
            grid=shape.grid(items, lanes, -(-shape.dim // (lanes * vec))),
            block=(lanes, cuda.BLOCK_THREADS // lanes),
            args=(
                *_rows(result), partials, *_rows(grad), *_factors(a),
                rev.offsets.ptr, rev.dst.ptr, rev.position.ptr, graph.edge_types.ptr,
                cuda.pointer(type_degree), *pieces, np.int64(items), np.int64(cut.limit),
                np.int32(shape.n_batch), np.int64(shape.n_dst), np.int32(shape.n_blocks),
                np.int32(concat_own), np.int32(shape.dim),
            ),
        )  # fmt: skip

    merge = _merge(shape, result, graph, cut, 0, rev.offsets, False, shape.dim)
    return _with_pieces(shape, graph.n_src_nodes, cut, launch, merge, shape.dim)


def _merge(
    shape: _Shape,
    output: Any,
    graph: Graph,
    cut: build.Pieces,
    location: int,
    offsets: Any,
    divide: bool,
    width: int,
) -> cuda.Launch:
    lanes = cuda.lanes(width, 1)
    n_long = len(cut.first) - 1
    return cuda.Launch(
        _SOURCE,
        cuda.instance("agg_hg_basis_merge", output.dtype, graph.index_dtype),
        grid=shape.grid(n_long, lanes, -(-width // lanes)),
        block=(lanes, cuda.BLOCK_THREADS // lanes),
        args=(
            *_rows(output), cuda.Scratch(), cut.row.ptr, cut.first.ptr, np.int64(n_long),
            np.int64(len(cut.row)), location, offsets.ptr, np.int32(divide),
            *shape.scalars("n_batch", "n_types"), np.int64(width),
        ),
    )  # fmt: skip


# Edges a team of threads is given at least, and teams there are at most.
_TEAM_EDGES = 32
_MAX_TEAMS = 1 << 14


def _plan_grad_parameters(call: Call, graph: Graph, type_degree: Any) -> cuda.Plan:
    a, shape = call.arrays, _Shape(call)
    grad, x, grad_weights = a["grad_output"], a["input_embedding"], a["grad_weights"]
    vec = cuda.vec_width(x.dtype, shape.dim, grad, x)
    lanes = cuda.lanes(shape.dim, vec)
    per_team = shape.n_types * shape.n_bases
    teams = max(1, min(_MAX_TEAMS, -(-graph.n_indices // _TEAM_EDGES)))
    if grad_weights is not None:
        teams = max(1, min(teams, shape.n_dst * shape.n_bases * shape.dim // max(1, per_team)))
    partials = cuda.Scratch() if grad_weights is not None else 0
    launches = [
        cuda.Launch(
            _SOURCE,
            cuda.instance("agg_hg_basis_grad_parameters", x.dtype, graph.index_dtype, vec),
            grid=(cuda.blocks(teams, cuda.BLOCK_THREADS // lanes),),
            block=(lanes, cuda.BLOCK_THREADS // lanes),
            args=(
                partials, *_companion(a["grad_edge_weight"]), *_rows(grad), *_rows(x),
                *_factors(a), graph.offsets.ptr, graph.indices.ptr, graph.edge_types.ptr,
                cuda.pointer(type_degree), np.int64(graph.n_indices), np.int64(shape.n_dst),
                np.int64(teams), *shape.scalars("n_batch", "n_types", "n_bases", "dim"),
            ),
        )
    ]  # fmt: skip
    if grad_weights is None:
        return cuda.Plan(tuple(launches))
    launches.append(
        cuda.Launch(
            _SOURCE,
            cuda.instance("agg_hg_basis_grad_weights", x.dtype),
            grid=(cuda.blocks(per_team, cuda.WARP),),
            block=(cuda.WARP, cuda.BLOCK_THREADS // cuda.WARP),
            args=(
                grad_weights.ptr, np.int64(grad_weights.strides[0]), _is_float(grad_weights),
                cuda.Scratch(), np.int64(teams), *shape.scalars("n_types", "n_bases"),
            ),
        )
    )  # fmt: skip
    return cuda.Plan(tuple(launches), teams * per_team * shape.accumulator_size)


class _Shape:
    """The sizes a plan needs, and the grid they make."""

    def __init__(self, call: Call) -> None:
        sizes = call.sizes
        self.dim = sizes["dim_in"]
        self.n_types = sizes["n_edge_types"]
        self.n_bases = sizes.get("n_bases", 1)
        self.n_blocks = sizes.get("n_bases", self.n_types)
        self.n_dst = sizes["n_dst_nodes"]
        self.n_batch = max(0, sizes[BATCH]) if sizes[BATCH] >= 0 else 1
        self.accumulator_size = 8 if call.dtypes["T"] == "float64" else 4

    def grid(self, items: int, lanes: int, tiles: int) -> tuple[int, int, int]:
        """Return blocks for items, tiles and the batch."""
        most = cuda.MAX_GRID_YZ
        rows = cuda.blocks(items, cuda.BLOCK_THREADS // lanes)
        return rows, min(tiles, most), min(self.n_batch, most)

    def scalars(self, *names: str) -> tuple[np.int32, ...]:
        """Return sizes as the int arguments they are in the kernels."""
        return tuple(np.int32(getattr(self, name)) for name in names)


def _rows(a: Any) -> tuple[Any, ...]:
    """Return a node array's arguments: address, row stride, batch stride."""
    return a.ptr, np.int64(a.strides[-2]), np.int64(a.strides[0] if a.ndim == 3 else 0)


def _is_float(a: Any) -> np.int32:
    return np.int32(a is not None and a.dtype == "float32")


def _companion(a: Any) -> tuple[Any, ...]:
    """Return a parameter array's arguments: address, and whether it holds float32."""
    return cuda.pointer(a), _is_float(a)


def _factors(a: dict[str, Any]) -> tuple[Any, ...]:
    weights = a["weights_combination"]
    stride = np.int64(0 if weights is None else weights.strides[0])
    return (
        cuda.pointer(weights), stride, _is_float(weights), *_companion(a["edge_weight"])
    )  # fmt: skip
