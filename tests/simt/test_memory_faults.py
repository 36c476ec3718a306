"""Addresses: bounds, alignment, const, and what was never written."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import simt

from . import cupy_standin as cp
from .planted_sources import faults_of, floats, kernel

N = 40
OFFSETS = np.concatenate([[0], np.random.default_rng(1).integers(0, 5, N).cumsum()]).astype(
    np.int32
)


def segment_sum(bug: str = "") -> np.ndarray:
    values, output = floats(OFFSETS[-1]), cp.empty(N, np.float32)
    args = (output, cp.asarray(values), cp.asarray(OFFSETS), np.int32(N))
    kernel("memory", "segment_sum", bug)((2,), (32,), args)
    return output.get()


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_right_kernel_passes(check: bool, seed: int) -> None:
    with simt.config(check=check, seeds=(seed,)):
        got = segment_sum()
    values = floats(OFFSETS[-1])
    expected = [values[a:b].sum() for a, b in itertools.pairwise(OFFSETS)]
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


def test_load_past_the_end() -> None:
    error = faults_of(segment_sum, "BUG_ONE_TOO_MANY")
    (fault,) = error.faults
    assert fault.kind == "oob"
    assert "4-byte load" in fault.message
    assert "'offsets'" in fault.message
    assert "0 bytes past the end" in fault.message
    assert fault.where == "kernel.cu:14"


def test_store_past_the_end() -> None:
    (fault,) = faults_of(segment_sum, "BUG_STORE_OUTSIDE").faults
    assert fault.kind == "oob"
    assert "store" in fault.message
    assert "'output'" in fault.message


def test_output_that_is_not_written_whole() -> None:
    error = faults_of(segment_sum, "BUG_ROW_UNWRITTEN")
    assert error.kinds == {"uninit"}
    assert "1 of 40 elements" in str(error)


def test_dynamic_shared_memory_too_small() -> None:
    args = (cp.empty(64, np.float32), cp.asarray(floats(64)))
    rotate = kernel("memory", "rotate")
    rotate((1,), (64,), args, shared_mem=256)
    (fault,) = faults_of(rotate, (1,), (64,), args, shared_mem=252).faults
    assert fault.kind == "oob"
    assert "dynamic shared memory: 252 bytes" in fault.message


def test_no_dynamic_shared_memory_at_all() -> None:
    args = (cp.empty(64, np.float32), cp.asarray(floats(64)))
    assert faults_of(kernel("memory", "rotate"), (1,), (64,), args).kinds == {"oob"}


def test_static_shared_array_runs_into_its_neighbour() -> None:
    overrun = kernel("memory", "static_overrun")
    overrun((1,), (1,), (cp.empty(1, np.float32), np.int32(7)))
    assert faults_of(overrun, (1,), (1,), (cp.empty(1, np.float32), np.int32(8))).kinds <= {
        "oob",
        "undefined",
    }


def test_local_array() -> None:
    overrun = kernel("memory", "local_overrun")
    (fault,) = faults_of(overrun, (1,), (1,), (cp.empty(1, np.int32), np.int32(4))).faults
    assert fault.kind == "undefined"
    assert "out of bounds" in fault.message


@pytest.mark.parametrize("name", ["vector_copy", "read_only_vector_copy"])
def test_misaligned_vector(name: str) -> None:
    copy = kernel("memory", name)
    x = cp.asarray(floats(33))
    copy((1,), (8,), (cp.empty(32, np.float32), x[:32], np.int32(32)))
    args = (cp.empty(32, np.float32), x[1:], np.int32(32))
    assert faults_of(copy, (1,), (8,), args).kinds == {"misaligned"}


def test_vector_that_ends_outside() -> None:
    copy = kernel("memory", "vector_copy")
    args = (cp.empty(32, np.float32), cp.asarray(floats(30)), np.int32(30))
    (fault,) = faults_of(copy, (1,), (8,), args).faults
    assert fault.kind == "oob"
    assert "16-byte load" in fault.message
    assert "overruns 'from' (120 bytes) at +112" in fault.message


def test_write_through_pointer_to_const() -> None:
    error = faults_of(kernel("memory", "write_const"), (1,), (1,), (cp.zeros(4, np.float32),))
    assert error.kinds == {"read-only"}


def test_input_that_was_never_written() -> None:
    args = (cp.empty(32, np.float32), cp.empty(32, np.float32), np.int32(32))
    (fault,) = faults_of(kernel("memory", "copy"), (1,), (32,), args).faults
    assert fault.kind == "uninit"
    assert fault.count == 32
    assert "'from'+0" in fault.message


def test_written_by_an_earlier_kernel() -> None:
    a, b, c = (cp.empty(32, np.float32) for _ in range(3))
    a[:] = 3
    copy = kernel("memory", "copy")
    copy((1,), (32,), (b, a, np.int32(32)))
    copy((1,), (32,), (c, b, np.int32(32)))
    np.testing.assert_array_equal(c.get(), np.full(32, 3, np.float32))


@pytest.mark.parametrize("as_address", [True, False])
def test_scratch_of_raw_bytes(as_address: bool) -> None:
    scratch, x, y = cp.empty(256, np.uint8), cp.asarray(floats(32)), cp.empty(32, np.float32)
    argument = scratch[128:].data.ptr if as_address else scratch[128:]
    copy = kernel("memory", "copy")
    error = faults_of(copy, (1,), (32,), (y, argument, np.int32(32)))
    assert error.kinds == {"uninit"}
    copy((1,), (32,), (argument, x, np.int32(32)))
    copy((1,), (32,), (y, argument, np.int32(32)))
    np.testing.assert_array_equal(y.get(), x.get())
    assert scratch.unwritten() == 128


def test_uninitialised_shared_memory() -> None:
    args = (cp.empty(32, np.float32),)
    (fault,) = faults_of(kernel("memory", "uninitialised_shared"), (1,), (32,), args).faults
    assert fault.kind == "uninit"
    assert "never" in fault.message


def test_only_arguments_may_be_touched() -> None:
    other = cp.zeros(1, np.float32)
    args = (cp.empty(1, np.float32), np.int64(other.data.ptr))
    (fault,) = faults_of(kernel("memory", "through_number"), (1,), (1,), args).faults
    assert fault.kind == "oob"
    assert "no argument covers" in fault.message


def test_null_pointer() -> None:
    args = (cp.empty(4, np.float32), 0, np.int32(4))
    assert faults_of(kernel("memory", "copy"), (1,), (4,), args).kinds <= {"null", "oob"}


def test_array_of_size_zero_may_not_be_touched() -> None:
    x, y = cp.empty(0, np.float32), cp.empty(4, np.float32)
    assert x.data.ptr != 0
    copy = kernel("memory", "copy")
    copy((1,), (4,), (y.data.ptr, x.data.ptr, np.int32(0)))
    for pointer in (x, x.data.ptr):
        assert faults_of(copy, (1,), (4,), (y, pointer, np.int32(4))).kinds == {"oob"}


def test_array_argument_is_bounded_by_its_view() -> None:
    x = cp.asarray(floats(32))
    args = (cp.empty(32, np.float32), x[:16], np.int32(32))
    (fault,) = faults_of(kernel("memory", "copy"), (1,), (32,), args).faults
    assert fault.kind == "oob"


def test_address_argument_reaches_the_whole_array() -> None:
    x, y = cp.asarray(floats(32)), cp.empty(32, np.float32)
    kernel("memory", "copy")((1,), (16,), (y.data.ptr, x[16:].data.ptr, np.int32(16)))
    np.testing.assert_array_equal(y[:16].get(), x[16:].get())


def test_wild_pointer_without_instrumentation() -> None:
    args = (cp.zeros(1, np.int32), np.int64(1 << 32))
    with simt.config(check=False):
        error = faults_of(kernel("memory", "write_far"), (1,), (1,), args)
    (fault,) = error.faults
    assert fault.kind == "crash"
    assert "signal 11" in fault.message
    assert fault.where.startswith("kernel.cu:")


@pytest.mark.parametrize("at", [-1, 5])
def test_neighbouring_bytes_without_instrumentation(at: int) -> None:
    args = (cp.zeros(5, np.int32), np.int64(at))
    with simt.config(check=False):
        error = faults_of(kernel("memory", "write_far"), (1,), (1,), args)
    assert error.kinds == {"canary"}
    assert "`to`" in str(error)


def test_huge_array_costs_what_is_touched() -> None:
    rows = 3_000_000
    x, y = cp.zeros((rows, 1000), np.float32), cp.empty(4, np.float32)
    x[-1, -4:] = 5
    kernel("memory", "copy")((1,), (4,), (y, x[-1, -4:].data.ptr, np.int32(4)))
    np.testing.assert_array_equal(y.get(), np.full(4, 5, np.float32))
