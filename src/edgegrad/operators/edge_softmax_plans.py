"""Launch plans of edge_softmax; kernels/edge_softmax.cu says what its kernels expect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from edgegrad.backends import cuda, rows
from edgegrad.graph import Graph, build
from edgegrad.interop import ArrayView
from edgegrad.operator import FLOATS, Call

if TYPE_CHECKING:
    from edgegrad.operators.edge_softmax import Rows

_SOURCE = "edge_softmax.cu"
_WHOLE, _PARTS, _EDGES = (np.int32(i) for i in range(3))  # Phase
_PART_SIZES = {"SoftmaxPart": 2, "SumPart": 1}  # in accumulators


def _part(name: str, dtype: str) -> str:
    accumulator = cuda.C_TYPES["float64" if dtype == "float64" else "float32"]
    return f"edgegrad::{name}<{accumulator}>"


KERNELS = tuple(
    (_SOURCE, name)
    for name in (
        *(cuda.instance("edge_softmax_fwd", t) for t in FLOATS),
        *(cuda.instance("edge_softmax_bwd", t) for t in FLOATS),
        *(
            cuda.instance("edge_softmax_merge", _part(part, t))
            for part in _PART_SIZES
            for t in ("float32", "float64")
        ),
    )
)


def forward(call: Call, graph: Graph, edges: Rows, arrays: tuple[Any, ...], stream_id: int) -> None:
    """Enqueue the forward call; arrays are output, logits as rows."""
    _run(call, graph, edges, "edge_softmax_fwd", "SoftmaxPart", arrays, stream_id)


def backward(
    call: Call, graph: Graph, edges: Rows, arrays: tuple[Any, ...], stream_id: int
) -> None:
    """Enqueue the gradient; arrays are grad_logits, grad_output, output as rows."""
    _run(call, graph, edges, "edge_softmax_bwd", "SumPart", arrays, stream_id)


def _run(
    call: Call,
    graph: Graph,
    edges: Rows,
    kernel: str,
    part: str,
    arrays: tuple[ArrayView, ...],
    stream_id: int,
) -> None:
    cut = build.pieces(graph, edges.key, edges.offsets, rows.PIECE_EDGES, stream_id)
    cuda.run(_plan(graph, edges, kernel, part, arrays, cut), call.device, stream_id)


def _plan(
    graph: Graph,
    edges: Rows,
    kernel: str,
    part: str,
    arrays: tuple[ArrayView, ...],
    cut: build.Pieces,
) -> cuda.Plan:
    dtype, n_heads, n_rows = arrays[0].dtype, arrays[0].shape[1], len(edges.offsets) - 1
    head_lanes = cuda.lanes(n_heads, 1)
    degree = -(-graph.n_indices // max(1, n_rows))
    lanes = cuda.lanes(head_lanes * degree, 1)
    groups = -(-n_heads // head_lanes)
    limit, n_pieces = np.int64(cut.limit), len(cut.row)

    def launch(items: int, lanes: int, phase: Any, parts: Any, cuts: tuple[Any, ...]) -> Any:
        strided = (x for a in arrays for x in (a.ptr, np.int64(a.strides[0])))
        wide = np.int32(edges.offsets.dtype == "int64")
        return cuda.Launch(
            _SOURCE,
            cuda.instance(kernel, dtype),
            grid=rows.grid(items, lanes, groups),
            block=rows.block(lanes),
            args=(
                *strided, parts, edges.offsets.ptr, cuda.pointer(edges.order), wide,
                *cuts, np.int64(items), limit, phase, np.int32(head_lanes), np.int64(n_heads),
            ),
        )  # fmt: skip

    short = launch(n_rows, lanes, _WHOLE, 0, (0, 0, 0))
    if n_pieces == 0:
        return cuda.Plan((short,))
    cuts, scratch = (cut.row.ptr, cut.begin.ptr, cut.end.ptr), cuda.Scratch()
    launches = (
        short,
        launch(n_pieces, cuda.WARP, _PARTS, scratch, cuts),
        _merge(cut, _part(part, dtype), n_heads),
        launch(n_pieces, cuda.WARP, _EDGES, scratch, cuts),
    )
    size = n_pieces * n_heads * _PART_SIZES[part] * rows.accumulator_size(dtype)
    return cuda.Plan(launches, size)


def _merge(cut: build.Pieces, part: str, n_heads: int) -> cuda.Launch:
    n_long = len(cut.first) - 1
    return cuda.Launch(
        _SOURCE,
        cuda.instance("edge_softmax_merge", part),
        grid=rows.grid(n_long, cuda.WARP, n_heads),
        block=rows.block(cuda.WARP),
        args=(cuda.Scratch(), cut.first.ptr, np.int64(n_long), np.int64(n_heads)),
    )
