"""Launch plans of what is written per edge; kernels/per_edge.cu says what its kernels expect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from edgegrad.backends import cuda, rows
from edgegrad.interop import ArrayView
from edgegrad.operator import FLOATS
from edgegrad.operators.edges import Edges

if TYPE_CHECKING:
    from edgegrad.operators.per_edge import Operands

_SOURCE = "per_edge.cu"
_RUN_EDGES = 16  # kRunEdges
_WIDE = [(t, i, v) for t in FLOATS for i in cuda.INDEX_DTYPES for v in cuda.two_widths(t)]
KERNELS = tuple(
    (_SOURCE, cuda.instance(name, *p)) for name in ("expand", "grad_factor") for p in _WIDE
)


def expand(edges: Edges, output: ArrayView, o: Operands, stream_id: int) -> None:
    """Enqueue the rows of all edges."""
    dtype, dim = output.dtype, output.shape[-1]
    arrays = (o.row, o.source, o.edge, o.extrema, o.centre, o.deviation, o.subtrahend)
    vec = cuda.wide_or_one(dtype, dim, output, *arrays)
    lanes = cuda.lanes(dim, vec)
    if dim == 0 or edges.count == 0:
        return
    launch = cuda.Launch(
        _SOURCE,
        cuda.instance("expand", dtype, edges.index_dtype, vec),
        grid=rows.grid(-(-edges.count // _RUN_EDGES), lanes, -(-dim // (lanes * vec)))[:2],
        block=rows.block(lanes),
        args=(
            *_rows(output), *_either(o.row, dtype), *rows.divisor_args(o.divide),
            *_either(o.source, dtype), *_rows(o.edge), *_rows(o.extrema), *_rows(o.centre),
            *_rows(o.deviation), *_rows(o.subtrahend), cuda.pointer(o.list_offsets),
            cuda.pointer(o.list), *_walk(edges), np.int32(dim),
        ),
    )  # fmt: skip
    cuda.launch(launch, output.device, stream_id)


def grad_factor(
    edges: Edges,
    result: ArrayView,
    grad: ArrayView,
    values: ArrayView,
    heads: int,
    extrema: ArrayView | None,
    divide: ArrayView | None,
    mean: ArrayView | None,
    stream_id: int,
) -> None:
    """Enqueue the gradient of the edges' factors."""
    width = grad.shape[-1] // heads
    vec = cuda.wide_or_one(grad.dtype, width, grad, values, extrema, mean)
    lanes = cuda.lanes(width, vec)
    n_batch = grad.shape[0] if grad.ndim == 3 else 1
    if edges.count == 0:
        return
    launch = cuda.Launch(
        _SOURCE,
        cuda.instance("grad_factor", grad.dtype, edges.index_dtype, vec),
        grid=rows.grid(-(-edges.count // _RUN_EDGES), lanes)[:1],
        block=rows.block(lanes),
        args=(
            result.ptr, np.int64(result.strides[0]), rows.is_float(result), *rows.row_args(grad),
            *rows.row_args(values), *rows.row_args(extrema), *rows.divisor_args(divide),
            *rows.row_args(mean), *_walk(edges), np.int32(n_batch), np.int32(heads),
            np.int32(width),
        ),
    )  # fmt: skip
    cuda.launch(launch, result.device, stream_id)


def _walk(edges: Edges) -> tuple[Any, ...]:
    arrays = (edges.offsets, edges.ids, edges.order, edges.map)
    return *map(cuda.pointer, arrays), np.int64(edges.count), np.int64(edges.rows)


def _rows(a: ArrayView | None) -> tuple[Any, ...]:
    return cuda.pointer(a), np.int64(0 if a is None else a.strides[0])


def _either(a: ArrayView | None, dtype: str) -> tuple[Any, ...]:
    return *_rows(a), np.int32(a is not None and a.dtype != dtype)
