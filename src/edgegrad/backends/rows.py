"""Launch plans of row-wise kernels: short rows, pieces of long rows, and what adds those up.

See kernels/common/rows.cuh for how a kernel walks rows, kernels/rows.cu for the merge.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from edgegrad.backends import cuda
from edgegrad.graph.build import Pieces
from edgegrad.interop import ArrayView
from edgegrad.operator import FLOATS

# Rows with more edges are cut, so that one team of threads never holds up the others.
PIECE_EDGES = 128

_SOURCE = "rows.cu"
KERNELS = tuple((_SOURCE, cuda.instance("merge_pieces", t)) for t in FLOATS)

_SCRATCH = cuda.Scratch()

PieceArgs = tuple[Any, ...]
Launcher = Callable[[int, Any, PieceArgs], cuda.Launch]


def accumulator_size(dtype: str) -> int:
    """Return the bytes of an accumulator of this feature type."""
    return 8 if dtype == "float64" else 4


def block(lanes: int) -> tuple[int, int]:
    """Return the threads of a block whose rows are shared by `lanes` of them."""
    return lanes, cuda.BLOCK_THREADS // lanes


def grid(items: int, lanes: int, tiles: int = 1, n_batch: int = 1) -> tuple[int, int, int]:
    """Return blocks for items, tiles of columns and the batch; kernels loop over what is left."""
    most = cuda.MAX_GRID_YZ
    rows = cuda.blocks(items, cuda.BLOCK_THREADS // lanes)
    return rows, min(tiles, most), min(n_batch, most)


def row_args(a: ArrayView | None) -> tuple[Any, ...]:
    """Return a node array's arguments: address (0 for None), row stride, batch stride."""
    if a is None:
        return 0, np.int64(0), np.int64(0)
    return a.ptr, np.int64(a.strides[-2]), np.int64(a.strides[0] if a.ndim == 3 else 0)


def is_float(a: ArrayView | None) -> np.int32:
    """Return whether a parameter array holds float32."""
    return np.int32(a is not None and a.dtype == "float32")


def companion_args(a: ArrayView | None) -> tuple[Any, ...]:
    """Return a parameter array's arguments: address (0 for None), whether it holds float32."""
    return cuda.pointer(a), is_float(a)


def plan(
    rows: int,
    cut: Pieces,
    launch: Launcher,
    output: ArrayView,
    width: int,
    n_batch: int,
    *,
    location: int = 0,
    n_blocks: int = 1,
    divide: ArrayView | None = None,
    root: bool = False,
    before: tuple[cuda.Launch, ...] = (),
) -> cuda.Plan:
    """Launch a row-wise kernel over short rows, then over the pieces of long ones, and merge.

    Parameters
    ----------
    rows, cut
        Number of rows, and how the long ones among them are cut.
    launch
        Makes the launch for a number of items, a place for sums (0: none) and the arguments
        ``piece_row, piece_begin, piece_end, n_items, limit``.
    output, width
        Where rows are written, and the columns of sums that each has.
    location, n_blocks
        Address of an int64 per row: the row is block ``location % n_blocks`` of output row
        ``location // n_blocks``, blocks being `width` columns; 0: rows are output rows.
    divide, root
        Divide each long row's sum by its number of edges, if these are offsets, or else by its
        entry; then take the square root.
    before
        Launches that come first.
    """
    add_up = merge(
        cut,
        output,
        width,
        n_batch,
        location=location,
        n_blocks=n_blocks,
        divide=divide,
        root=root,
    )
    scratch = n_batch * len(cut.row) * width * accumulator_size(output.dtype)
    return plan_merged(rows, cut, launch, add_up, scratch, before)


def plan_merged(
    rows: int,
    cut: Pieces,
    launch: Launcher,
    merge: cuda.Launch,
    scratch: int,
    before: tuple[cuda.Launch, ...] = (),
) -> cuda.Plan:
    """Launch a row-wise kernel over short rows; if there are long ones, over pieces, and merge."""
    limit, n = np.int64(cut.limit), len(cut.row)
    short = (*before, launch(rows, 0, (0, 0, 0, np.int64(rows), limit)))
    if n == 0:
        return cuda.Plan(short)
    pieces = launch(n, cuda.Scratch(), (*piece_args(cut), np.int64(n), limit))
    return cuda.Plan((*short, pieces, merge), scratch)


def piece_args(cut: Pieces) -> PieceArgs:
    """Return the arguments piece_row, piece_begin, piece_end."""
    return cut.row.ptr, cut.begin.ptr, cut.end.ptr


def divisor_args(a: ArrayView | None) -> tuple[Any, ...]:
    """Return a divisor's arguments: offsets and sums (0: none), whether sums hold float32."""
    if a is None or a.dtype in cuda.INDEX_DTYPES:
        return cuda.pointer(a), 0, np.int32(0)
    return 0, a.ptr, is_float(a)


def merge_grid(cut: Pieces, width: int, n_batch: int) -> dict[str, Any]:
    """Return the grid and block of a launch over long rows and their columns."""
    lanes = cuda.lanes(width, 1)
    n_long = len(cut.first) - 1
    return {"grid": grid(n_long, lanes, -(-width // lanes), n_batch), "block": block(lanes)}


def merge(
    cut: Pieces,
    output: ArrayView,
    width: int,
    n_batch: int = 1,
    *,
    location: int = 0,
    n_blocks: int = 1,
    divide: ArrayView | None = None,
    root: bool = False,
    partials: cuda.Scratch = _SCRATCH,
) -> cuda.Launch:
    """Launch the sum of every long row's pieces; see `plan`."""
    offsets, sums, sums_are_float = divisor_args(divide)
    wide = np.int32(divide is not None and divide.dtype == "int64")
    return cuda.Launch(
        _SOURCE,
        cuda.instance("merge_pieces", output.dtype),
        **merge_grid(cut, width, n_batch),
        args=(
            *row_args(output), partials, cut.row.ptr, cut.first.ptr,
            np.int64(len(cut.first) - 1), np.int64(len(cut.row)), location, np.int32(n_blocks),
            offsets, wide, sums, sums_are_float, np.int32(root), np.int32(n_batch),
            np.int64(width),
        ),
    )  # fmt: skip
