"""Launch plans of gather-reduce; kernels/gather_reduce.cu says what its kernels expect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from edgegrad.backends import cuda, rows
from edgegrad.interop import ArrayView
from edgegrad.operator import FLOATS
from edgegrad.operators.edges import Edges

if TYPE_CHECKING:
    from edgegrad.operators.gather_reduce import Options

_SOURCE = "gather_reduce.cu"
_TYPES = [(t, i) for t in FLOATS for i in cuda.INDEX_DTYPES]
_WIDE = [(t, i, v) for t, i in _TYPES for v in cuda.two_widths(t)]
KERNELS = tuple(
    (_SOURCE, name)
    for name in (
        *(cuda.instance("gather_sum", *p, winner) for p in _WIDE for winner in (0, 1)),
        *(cuda.instance("gather_extremum", *p) for p in _WIDE),
        *(cuda.instance("gather_spread", *p) for p in _TYPES),
        *(cuda.instance("merge_extrema", t) for t in FLOATS),
    )
)


def run(
    edges: Edges, output: ArrayView, values: ArrayView | None, o: Options, stream_id: int
) -> None:
    """Enqueue a gather-reduce."""
    call = _Call(edges, output, values, o)
    if call.dim == 0:
        return
    plan = {"EXTREMUM": _plan_extremum, "SQUARES": _plan_spread, "SPREAD": _plan_spread}
    cuda.run(plan.get(o.reducer.name, _plan_sum)(call), output.device, stream_id)


class _Call:
    """What the plans need of a call."""

    def __init__(
        self, edges: Edges, output: ArrayView, values: ArrayView | None, o: Options
    ) -> None:
        self.edges, self.output, self.values, self.o = edges, output, values, o
        self.dtype = output.dtype if values is None else values.dtype
        self.dim = output.shape[-1]
        self.head_width = self.dim // o.heads
        self.n_batch = output.shape[0] if output.ndim == 3 else 1
        self.cut = edges.cut
        self.walk = tuple(map(cuda.pointer, (edges.offsets, edges.ids, edges.order, edges.map)))
        self.start = rows.row_args(o.start)
        self.start_rows = np.int64(0 if o.start is None else o.start_rows)
        self.weight = (*_weight_args(o.weight), np.int32(self.head_width))

    def grid(self, items: int, lanes: int, vec: int) -> dict[str, Any]:
        tiles = -(-self.dim // (lanes * vec))
        grid = rows.grid(items, lanes, tiles, self.n_batch)
        return {"grid": grid, "block": rows.block(lanes)}

    def vec(self, *arrays: ArrayView | None) -> int:
        return cuda.wide_or_one(self.dtype, self.head_width, *arrays)

    def sizes(self) -> tuple[Any, ...]:
        return np.int32(self.n_batch), np.int32(self.dim)


def _plan_sum(call: _Call) -> cuda.Plan:
    o, output, x = call.o, call.output, call.values
    vec = call.vec(output, x, o.extrema, o.start)
    lanes = cuda.lanes(call.dim, vec)
    name = cuda.instance(
        "gather_sum", call.dtype, call.edges.index_dtype, vec, int(o.reducer.name == "WINNER")
    )

    def launch(items: int, partials: Any, pieces: rows.PieceArgs) -> cuda.Launch:
        return cuda.Launch(
            _SOURCE,
            name,
            **call.grid(items, lanes, vec),
            args=(
                *rows.row_args(output), np.int32(output.dtype != call.dtype), partials,
                *rows.row_args(x), *rows.row_args(o.extrema), *call.weight,
                *rows.divisor_args(o.divide), *rows.divisor_args(o.gathered),
                *call.start, np.int32(o.start is not None and o.start.dtype != call.dtype),
                cuda.pointer(o.start_ids), call.start_rows,
                *call.walk, *pieces, *call.sizes(),
            ),
        )  # fmt: skip

    return _plan(call, launch, o.divide)


def _plan(call: _Call, launch: rows.Launcher, divide: ArrayView | None) -> cuda.Plan:
    n = call.edges.rows
    if call.cut is None:
        return cuda.Plan((launch(n, 0, (0, 0, 0, np.int64(n), np.int64(2**62))),))
    return rows.plan(
        n, call.cut, launch, call.output, call.dim, call.n_batch, divide=divide, root=call.o.root
    )


def _plan_spread(call: _Call) -> cuda.Plan:
    o, output = call.o, call.output
    lanes = cuda.lanes(call.dim, 1)
    divide, gathered = (rows.divisor_args(a)[0] for a in (o.divide, o.gathered))

    def launch(items: int, partials: Any, pieces: rows.PieceArgs) -> cuda.Launch:
        return cuda.Launch(
            _SOURCE,
            cuda.instance("gather_spread", call.dtype, call.edges.index_dtype),
            **call.grid(items, lanes, 1),
            args=(
                *rows.row_args(output), partials, *rows.row_args(call.values),
                *rows.row_args(o.centre), *rows.row_args(o.deviation), *rows.row_args(o.own),
                divide, np.int32(o.root), gathered, *call.start, call.start_rows,
                *call.walk, *pieces, *call.sizes(),
            ),
        )  # fmt: skip

    return _plan(call, launch, o.divide)


def _plan_extremum(call: _Call) -> cuda.Plan:
    o, output, x, extrema = call.o, call.output, call.values, call.o.extrema
    assert extrema is not None  # by check_extrema
    vec = call.vec(output, x, extrema)
    lanes = cuda.lanes(call.dim, vec)
    n_pieces = 0 if call.cut is None else len(call.cut.row)
    n_partials = call.n_batch * n_pieces * call.dim
    # Positions lie behind the values, at a multiple of 16 bytes.
    values_size = -(-n_partials * rows.accumulator_size(call.dtype) // 16) * 16
    positions = cuda.Scratch(values_size)

    def launch(items: int, partials: Any, pieces: rows.PieceArgs) -> cuda.Launch:
        return cuda.Launch(
            _SOURCE,
            cuda.instance("gather_extremum", call.dtype, call.edges.index_dtype, vec),
            **call.grid(items, lanes, vec),
            args=(
                *rows.row_args(output), *rows.row_args(extrema), partials,
                positions if isinstance(partials, cuda.Scratch) else 0, *rows.row_args(x),
                np.int32(o.sign), *call.weight, *call.walk, *pieces, *call.sizes(),
            ),
        )  # fmt: skip

    if call.cut is None:
        return _plan(call, launch, None)
    merge = cuda.Launch(
        _SOURCE,
        cuda.instance("merge_extrema", call.dtype),
        **rows.merge_grid(call.cut, call.dim, call.n_batch),
        args=(
            *rows.row_args(output), *rows.row_args(extrema), np.int32(call.edges.wide),
            cuda.Scratch(), positions, call.cut.row.ptr, call.cut.first.ptr,
            np.int64(len(call.cut.first) - 1), np.int64(n_pieces), np.int32(o.sign),
            np.int32(call.n_batch), np.int64(call.dim),
        ),
    )  # fmt: skip
    return rows.plan_merged(call.edges.rows, call.cut, launch, merge, values_size + 8 * n_partials)


def _weight_args(a: ArrayView | None) -> tuple[Any, ...]:
    return cuda.pointer(a), np.int64(0 if a is None else a.strides[0]), rows.is_float(a)
