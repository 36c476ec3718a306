"""Coalescing, bank conflicts, and the work of each block."""

from __future__ import annotations

import numpy as np
import pytest

import simt

from . import cupy_standin as cp
from .launch import AccessStats
from .planted_sources import kernel


def only(operation: str, space: str = "global") -> AccessStats:
    """The one place in the last launch that does `operation`."""
    stats = simt.launches[-1].stats
    (found,) = (s for s in stats if s.operation == operation and s.space == space)
    return found


@pytest.mark.parametrize(("stride", "sectors"), [(1, 4), (2, 8), (8, 32), (0, 1)])
def test_sectors_of_strided_loads(stride: int, sectors: int) -> None:
    args = (cp.empty(32, np.float32), cp.zeros(256, np.float32), np.int32(stride))
    with simt.config(stats=True):
        kernel("access", "strided")((1,), (32,), args)
    load = only("load")
    assert (load.per_request, load.ideal, load.requests, load.lanes) == (sectors, 4, 1, 32)
    assert load.where == "kernel.cu:5"


@pytest.mark.parametrize(("pitch", "passes"), [(32, 32), (33, 1), (2, 2)])
def test_bank_conflicts(pitch: int, passes: int) -> None:
    with simt.config(stats=True):
        kernel("access", "column")((1,), (32,), (cp.empty(32, np.float32), np.int32(pitch)))
    assert only("load", "shared").per_request == passes
    assert only("store", "shared").per_request == passes


@pytest.mark.parametrize(
    ("T", "dtype", "width"),
    [
        ("float", np.float32, 1),
        ("float", np.float32, 4),
        ("double", np.float64, 2),
        ("unsigned short", np.uint16, 8),
        ("unsigned short", np.uint16, 2),
    ],
)
@pytest.mark.parametrize("seed", [0, 1])
def test_vector_is_one_access(T: str, dtype: type, width: int, seed: int) -> None:
    n = 128 * width
    x, y = cp.arange(n, dtype=dtype), cp.empty(n, dtype)
    with simt.config(stats=True, seeds=(seed,)):
        kernel("access", f"copy<{T}, {width}>")((2,), (64,), (y, x, np.int32(n)))
    np.testing.assert_array_equal(y.get(), x.get())
    for operation in ("load", "store"):
        stats = only(operation)
        assert stats.bytes == width * np.dtype(dtype).itemsize
        assert stats.requests == 4
        assert stats.per_request == stats.ideal
    assert simt.launches[-1].accesses == 256


@pytest.mark.parametrize("seed", [0, 5])
def test_work_per_block(seed: int) -> None:
    with simt.config(seeds=(seed,)):
        args = (cp.empty(4 * 32, np.float32), cp.zeros(4 * 32, np.float32))
        kernel("access", "triangle")((4,), (32,), args)
    record = simt.launches[-1]
    assert record.work_max == 32 * (4 + 1)
    assert record.work_mean == 32 * (2.5 + 1)
    assert record.accesses == 4 * record.work_mean


def test_record_of_a_launch() -> None:
    simt.launches.clear()
    args = (cp.empty(32, np.float32), cp.zeros(32, np.float32), np.int32(1))
    strided = kernel("access", "strided")
    strided((1,), (32,), args)
    strided((1, 1), (16, 1), args, stream=cp.cuda.ExternalStream(1234))
    with cp.cuda.Device(0), cp.cuda.Stream() as stream:
        strided(1, 32, args)
    first, second, third = simt.launches
    assert (first.kernel, first.grid, first.block) == ("strided", (1, 1, 1), (32, 1, 1))
    assert second.block == (16, 1, 1)
    assert [r.stream for r in simt.launches] == [0, 1234, stream.ptr]
    assert third.stats == ()
