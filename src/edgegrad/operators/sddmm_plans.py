"""Launch plans of sddmm; kernels/sddmm.cu says what its kernels expect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from edgegrad.backends import cuda, rows
from edgegrad.graph import Graph, build
from edgegrad.interop import ArrayView
from edgegrad.operator import FLOATS, Call

if TYPE_CHECKING:
    from edgegrad.operators.sddmm import Gradient

_SOURCE = "sddmm.cu"
_RUN_EDGES = 32  # kRunEdges
_DOT = 0  # kDot


def _widths(dtype: str) -> tuple[int, int]:
    """Elements per access: whole 16 bytes, or single elements where those do not fit."""
    return 1, cuda.vec_widths(dtype)[-1]


KERNELS = tuple(
    (_SOURCE, cuda.instance(name, t, i, v))
    for name in ("sddmm_map", "sddmm_dot", "sddmm_gradient")
    for t in FLOATS
    for i in cuda.INDEX_DTYPES
    for v in _widths(t)
)


def forward(
    call: Call, graph: Graph, arrays: tuple[ArrayView | None, ...], op: int, stream_id: int
) -> None:
    """Enqueue the forward call; arrays are output, lhs, rhs as rows."""
    plan = _plan_dot if op == _DOT else _plan_map
    cuda.run(cuda.Plan((plan(call, graph, arrays, op),)), call.device, stream_id)


def gradient(call: Call, graph: Graph, g: Gradient, stream_id: int) -> None:
    """Enqueue the gradient of one side."""
    cut = build.pieces(graph, g.key, g.offsets, rows.PIECE_EDGES, stream_id)
    cuda.run(_plan_gradient(graph, g, cut), call.device, stream_id)


def _plan_map(call: Call, graph: Graph, arrays: tuple[Any, ...], op: int) -> cuda.Launch:
    output, lhs, rhs = arrays
    width = output.shape[1]
    vec = _vec(output.dtype, width, *arrays)
    lanes = cuda.lanes(width, vec)
    runs = -(-graph.n_indices // _RUN_EDGES)
    return cuda.Launch(
        _SOURCE,
        cuda.instance("sddmm_map", output.dtype, graph.index_dtype, vec),
        grid=rows.grid(runs, lanes, -(-width // (lanes * vec))),
        block=rows.block(lanes),
        args=(
            *_row_args(output), *_row_args(lhs), *_row_args(rhs), *_edge_args(graph, runs),
            np.int32(op), np.int64(width),
        ),
    )  # fmt: skip


def _plan_dot(call: Call, graph: Graph, arrays: tuple[Any, ...], _: int) -> cuda.Launch:
    output, lhs, rhs = arrays
    n_heads, dim = call.n_heads, call.sizes["dim"]
    vec = _vec(output.dtype, dim, lhs, rhs)
    lanes = cuda.lanes(dim, vec)
    runs = -(-graph.n_indices // _RUN_EDGES)
    return cuda.Launch(
        _SOURCE,
        cuda.instance("sddmm_dot", output.dtype, graph.index_dtype, vec),
        grid=rows.grid(runs * n_heads, lanes),
        block=rows.block(lanes),
        args=(
            *_row_args(output), *_row_args(lhs), *_row_args(rhs), *_edge_args(graph, runs),
            np.int64(n_heads), np.int64(dim),
        ),
    )  # fmt: skip


def _plan_gradient(graph: Graph, g: Gradient, cut: build.Pieces) -> cuda.Plan:
    result, width = g.result, g.result.shape[1]
    # Without shared values, those of the edge are read as wide as the rows are.
    edges = (g.grad_output,) if g.per_head == 1 else ()
    channels = width if g.per_head == 1 else g.per_head
    vec = _vec(result.dtype, channels, result, g.other, g.own, *edges)
    lanes = cuda.lanes(width, vec)

    def launch(items: int, partials: Any, pieces: rows.PieceArgs) -> cuda.Launch:
        return cuda.Launch(
            _SOURCE,
            cuda.instance("sddmm_gradient", result.dtype, graph.index_dtype, vec),
            grid=rows.grid(items, lanes, -(-width // (lanes * vec))),
            block=rows.block(lanes),
            args=(
                *_row_args(result), partials, *_row_args(g.grad_output), *_row_args(g.other),
                *_row_args(g.own), g.offsets.ptr, g.other_end.ptr, cuda.pointer(g.position),
                *pieces, np.int32(g.term), np.int64(g.per_head), np.int64(width),
            ),
        )  # fmt: skip

    return rows.plan(result.shape[0], cut, launch, result, width, 1)


def _vec(dtype: str, dim: int, *arrays: ArrayView | None) -> int:
    narrow, wide = _widths(dtype)
    present = (a for a in arrays if a is not None)
    return wide if cuda.vec_width(dtype, dim, *present) == wide else narrow


def _row_args(a: ArrayView | None) -> tuple[Any, ...]:
    return cuda.pointer(a), np.int64(0 if a is None else a.strides[0])


def _edge_args(graph: Graph, runs: int) -> tuple[Any, ...]:
    sizes = (graph.n_indices, graph.n_dst_nodes, runs)
    return graph.offsets.ptr, graph.indices.ptr, *map(np.int64, sizes)
