"""Launch plans of R-GCN aggregation; kernels/agg_hg_basis.cu says what its kernels expect."""

from __future__ import annotations

from typing import Any

import numpy as np

from edgegrad.backends import cuda, rows
from edgegrad.graph import Graph, build
from edgegrad.operator import FLOATS, Call

_SOURCE = "agg_hg_basis.cu"
_WIDE = [(t, i, v) for t in FLOATS for i in cuda.INDEX_DTYPES for v in cuda.vec_widths(t)]
KERNELS = tuple(
    (_SOURCE, name)
    for name in (
        *(cuda.instance("agg_hg_basis_fwd", *p) for p in _WIDE),
        *(cuda.instance("agg_hg_basis_fwd_by_type", *p) for p in _WIDE),
        *(cuda.instance("agg_hg_basis_own", t, v) for t in FLOATS for v in cuda.vec_widths(t)),
        *(cuda.instance("agg_hg_basis_grad_input", *p) for p in _WIDE),
        *(cuda.instance("agg_hg_basis_grad_parameters", *p) for p in _WIDE),
        *(cuda.instance("agg_hg_basis_grad_weights", t) for t in FLOATS),
    )
)


def forward(call: Call, graph: Graph, concat_own: bool, norm: bool, stream_id: int) -> None:
    """Enqueue the forward call."""
    if call.arrays["weights_combination"] is None:
        groups = build.type_groups(graph, stream_id)
        cut = build.pieces(graph, "groups", groups.offsets, rows.PIECE_EDGES, stream_id)
        plan = _plan_fwd_by_type(call, graph, groups, cut, concat_own, norm)
    else:
        type_degree = build.type_groups(graph, stream_id).type_degree if norm else None
        cut = build.pieces(graph, "rows", graph.offsets, rows.PIECE_EDGES, stream_id)
        plan = _plan_fwd(call, graph, type_degree, cut, concat_own)
    cuda.run(plan, call.device, stream_id)


def backward(call: Call, graph: Graph, concat_own: bool, norm: bool, stream_id: int) -> None:
    """Enqueue the gradients asked for."""
    type_degree = build.type_groups(graph, stream_id).type_degree if norm else None
    if call.arrays["grad_input"] is not None:
        rev = build.reverse(graph, stream_id)
        cut = build.pieces(graph, "reverse", rev.offsets, rows.PIECE_EDGES, stream_id)
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

    def launch(items: int, partials: Any, pieces: rows.PieceArgs) -> cuda.Launch:
        return cuda.Launch(
            _SOURCE,
            cuda.instance("agg_hg_basis_fwd", output.dtype, graph.index_dtype, vec),
            grid=rows.grid(items, lanes, tiles, shape.n_batch),
            block=rows.block(lanes),
            args=(
                *rows.row_args(output), partials, *rows.row_args(x), *_factors(a),
                graph.offsets.ptr, graph.indices.ptr, graph.edge_types.ptr,
                cuda.pointer(type_degree), *pieces,
                *shape.scalars("n_batch", "n_bases", "dim"),
            ),
        )  # fmt: skip

    width = shape.n_bases * shape.dim
    own = _plan_own(shape, output, x, 0, concat_own)
    return rows.plan(graph.n_dst_nodes, cut, launch, output, width, shape.n_batch, before=own)


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

    def launch(items: int, partials: Any, pieces: rows.PieceArgs) -> cuda.Launch:
        return cuda.Launch(
            _SOURCE,
            cuda.instance("agg_hg_basis_fwd_by_type", output.dtype, graph.index_dtype, vec),
            grid=rows.grid(items, lanes, -(-shape.dim // (lanes * vec)), shape.n_batch),
            block=rows.block(lanes),
            args=(
                *rows.row_args(output), partials, *rows.row_args(x),
                *rows.companion_args(a["edge_weight"]),
                groups.offsets.ptr, graph.indices.ptr, groups.order.ptr, groups.location.ptr,
                *pieces,
                *shape.scalars("n_batch", "n_types"), np.int32(norm), np.int32(shape.dim),
            ),
        )  # fmt: skip

    return rows.plan(
        len(groups.location),
        cut,
        launch,
        output,
        shape.dim,
        shape.n_batch,
        location=groups.location.ptr,
        n_blocks=shape.n_types,
        divide=groups.offsets if norm else None,
        before=_plan_own(shape, output, x, shape.n_types * shape.dim, concat_own),
    )


def _plan_own(
    shape: _Shape, output: Any, x: Any, zero_width: int, concat_own: bool
) -> tuple[cuda.Launch, ...]:
    """What no edge writes: zeros of absent types, and the own row."""
    own_width = shape.dim if concat_own else 0
    width = zero_width + own_width
    if width == 0:
        return ()
    vec = cuda.vec_width(output.dtype, shape.dim, output, x)
    lanes = cuda.lanes(width, vec)
    return (
        cuda.Launch(
            _SOURCE,
            cuda.instance("agg_hg_basis_own", output.dtype, vec),
            grid=rows.grid(shape.n_dst, lanes, -(-width // (lanes * vec)), shape.n_batch),
            block=rows.block(lanes),
            args=(
                *rows.row_args(output), *rows.row_args(x), np.int64(shape.n_dst),
                np.int32(shape.n_batch), np.int64(zero_width),
                np.int64(shape.n_blocks * shape.dim), np.int32(own_width),
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

    def launch(items: int, partials: Any, pieces: rows.PieceArgs) -> cuda.Launch:
        return cuda.Launch(
            _SOURCE,
            cuda.instance("agg_hg_basis_grad_input", result.dtype, graph.index_dtype, vec),
            grid=rows.grid(items, lanes, -(-shape.dim // (lanes * vec)), shape.n_batch),
            block=rows.block(lanes),
            args=(
                *rows.row_args(result), partials, *rows.row_args(grad), *_factors(a),
                rev.offsets.ptr, rev.dst.ptr, rev.position.ptr, graph.edge_types.ptr,
                cuda.pointer(type_degree), *pieces,
                np.int32(shape.n_batch), np.int64(shape.n_dst), np.int32(shape.n_blocks),
                np.int32(concat_own), np.int32(shape.dim),
            ),
        )  # fmt: skip

    return rows.plan(graph.n_src_nodes, cut, launch, result, shape.dim, shape.n_batch)


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
            block=rows.block(lanes),
            args=(
                partials, *rows.companion_args(a["grad_edge_weight"]),
                *rows.row_args(grad), *rows.row_args(x),
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
                grad_weights.ptr, np.int64(grad_weights.strides[0]), rows.is_float(grad_weights),
                cuda.Scratch(), np.int64(teams), *shape.scalars("n_types", "n_bases"),
            ),
        )
    )  # fmt: skip
    return cuda.Plan(tuple(launches), teams * per_team * rows.accumulator_size(x.dtype))


class _Shape:
    """The sizes a plan needs."""

    def __init__(self, call: Call) -> None:
        sizes = call.sizes
        self.dim = sizes["dim_in"]
        self.n_types = sizes["n_edge_types"]
        self.n_bases = sizes.get("n_bases", 1)
        self.n_blocks = sizes.get("n_bases", self.n_types)
        self.n_dst = sizes["n_dst_nodes"]
        self.n_batch = call.n_batch

    def scalars(self, *names: str) -> tuple[np.int32, ...]:
        """Return sizes as the int arguments they are in the kernels."""
        return tuple(np.int32(getattr(self, name)) for name in names)


def _factors(a: dict[str, Any]) -> tuple[Any, ...]:
    weights = a["weights_combination"]
    stride = np.int64(0 if weights is None else weights.strides[0])
    weight_args = (cuda.pointer(weights), stride, rows.is_float(weights))
    return *weight_args, *rows.companion_args(a["edge_weight"])
