"""What CuPy passes on unchecked: arguments, dimensions, pointers."""

from __future__ import annotations

import numpy as np
import pytest

from . import cupy_standin as cp
from .planted_sources import faults_of, kernel

GRID, BLOCK = (1,), (32,)


def good() -> tuple:
    return cp.zeros(50, np.int32), cp.zeros(10, np.int64), np.int64(10)


def test_good_arguments() -> None:
    count, (counts, keys, n) = kernel("grid", "count"), good()
    count(GRID, BLOCK, (counts, keys, n))
    count(GRID, BLOCK, (counts.data.ptr, keys.data.ptr, 10))  # a plain int is 8 bytes, as in CuPy
    count(GRID, BLOCK, (counts.data.ptr, np.uint64(keys.data.ptr), n))
    assert counts.get()[0] == 30


@pytest.mark.parametrize(
    ("position", "value", "expected"),
    [
        (2, 10.0, r"`n` \(long long int, argument 2\) is a float"),
        (2, np.int32(10), "is a int32"),
        (2, np.float64(10), "dtype float64"),
        (2, np.zeros(1), "expected a NumPy scalar"),
        (0, np.zeros(50, np.int32), "expected an address or a device array"),
        (0, 1.0, "expected an address"),
        (1, True, "expected an address"),
    ],
)
def test_bad_argument(position: int, value: object, expected: str) -> None:
    args = list(good())
    args[position] = value
    with pytest.raises(TypeError, match=expected):
        kernel("grid", "count")(GRID, BLOCK, args)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.int16, np.float64])
@pytest.mark.parametrize("as_address", [True, False])
def test_array_of_another_dtype(dtype: type, as_address: bool) -> None:
    _, keys, n = good()
    counts = cp.zeros(50, dtype)
    args = (counts.data.ptr if as_address else counts, keys, n)
    expected = rf"`counts` \(int\*, argument 0\) is memory of dtype {np.dtype(dtype)}"
    with pytest.raises(TypeError, match=expected):
        kernel("grid", "count")(GRID, BLOCK, args)


@pytest.mark.parametrize("n", [2, 4])
def test_number_of_arguments(n: int) -> None:
    args = (*good(), np.int32(0))[:n]
    with pytest.raises(TypeError, match=f"{n} arguments given, expected 3"):
        kernel("grid", "count")(GRID, BLOCK, args)


def test_float_for_float_is_an_error_too() -> None:
    with pytest.raises(TypeError, match="float"):
        kernel("access", "strided")(GRID, BLOCK, (0, 0, 1.0))


def test_address_that_points_nowhere() -> None:
    counts, _, n = good()
    error = faults_of(kernel("grid", "count"), GRID, BLOCK, (counts, 0x1234, n))
    assert error.kinds == {"pointer"}
    assert "`keys` (const long long int*, argument 1) is 0x1234" in str(error)


def test_address_of_an_array_that_is_gone() -> None:
    counts, keys, n = good()
    address = keys.data.ptr
    del keys
    others = [cp.zeros(10, np.int64) for _ in range(50)]
    error = faults_of(kernel("grid", "count"), GRID, BLOCK, (counts, address, n))
    assert error.kinds == {"pointer"}
    assert len(others) == 50


def test_null_pointers_are_arguments() -> None:
    kernel("grid", "count")(GRID, BLOCK, (0, None, np.int64(0)))


def test_raw_bytes_may_hold_anything() -> None:
    _, keys, n = good()
    scratch = cp.zeros(400, np.uint8)
    kernel("grid", "count")(GRID, BLOCK, (scratch.data.ptr, keys.data.ptr, n))
    assert scratch[:200].view(np.int32).get()[0] == 10


@pytest.mark.parametrize("struct", ["half_t", "bfloat16_t"])
def test_half_types_are_told_apart(struct: str) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    code = f"""
    struct {struct} {{ unsigned short bits; }};
    extern "C" __global__ void clear({struct}* x) {{ x[threadIdx.x].bits = 0; }}
    """
    clear = cp.RawModule(code=code).get_function("clear")
    dtypes = {"half_t": np.dtype(np.float16), "bfloat16_t": np.dtype(ml_dtypes.bfloat16)}
    for name, dtype in dtypes.items():
        x = cp.full(32, 1, dtype)
        if name == struct:
            clear(GRID, BLOCK, (x.data.ptr,))
            assert not x.get().astype(np.float32).any()
        else:
            with pytest.raises(TypeError, match=f"memory of dtype {dtype}"):
                clear(GRID, BLOCK, (x.data.ptr,))


@pytest.mark.parametrize(
    ("grid", "block"),
    [
        ((0,), (32,)),
        ((1, 0), (32,)),
        ((1, 65536), (32,)),
        ((2**31,), (32,)),
        ((1,), (1025,)),
        ((1,), (64, 32)),
        ((1,), (1, 1, 65)),
        ((1,), (0,)),
    ],
)
def test_dimensions(grid: tuple, block: tuple) -> None:
    with pytest.raises(RuntimeError, match="INVALID_VALUE"):
        kernel("grid", "count")(grid, block, good())


def test_dynamic_shared_memory_beyond_the_default() -> None:
    rotate = kernel("memory", "rotate")
    args = (cp.empty(32, np.float32), cp.zeros(32, np.float32))
    with pytest.raises(RuntimeError, match="INVALID_VALUE"):
        rotate(GRID, BLOCK, args, shared_mem=49153)
    rotate.max_dynamic_shared_size_bytes = 60_000
    rotate(GRID, BLOCK, args, shared_mem=49153)
    with pytest.raises(RuntimeError, match="INVALID_VALUE"):
        rotate.max_dynamic_shared_size_bytes = 228 << 10


def test_unknown_kernel() -> None:
    with pytest.raises(RuntimeError, match="NOT_FOUND"):
        kernel("grid", "count").source.get_function("counts")
