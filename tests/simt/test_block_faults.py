"""Shared memory and block barriers."""

from __future__ import annotations

import numpy as np
import pytest

import simt

from . import cupy_standin as cp
from .planted_sources import faults_of, floats, kernel

BLOCK = 128


def block_sum(bug: str = "", n: int = BLOCK) -> None:
    x, y = floats(2, n), cp.empty((2, BLOCK), np.float32)
    args = (y, cp.asarray(x), np.int32(n))
    kernel("block", "block_sum", bug)((1,), (BLOCK,), args, shared_mem=4 * BLOCK)
    expected = np.broadcast_to(x.sum(1, keepdims=True), (2, BLOCK))
    np.testing.assert_allclose(y.get(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("n", [BLOCK, 100])
@pytest.mark.parametrize("check", [True, False])
def test_right_kernel_passes(check: bool, n: int) -> None:
    with simt.config(check=check, seeds=(0, 1, 2, 3), compare_seeds="bitwise", preempt=7):
        block_sum(n=n)


@pytest.mark.parametrize(
    ("bug", "hazard", "array"),
    [
        ("BUG_TREE", "WAR", "dynamic shared"),
        ("BUG_READ_TOO_EARLY", "RAW", "total"),
        ("BUG_WRITE_TOO_EARLY", "WAR", "total"),
    ],
)
def test_missing_barrier(bug: str, hazard: str, array: str) -> None:
    error = faults_of(block_sum, bug)
    races = [f for f in error.faults if f.kind == "race" and f.message.startswith(hazard)]
    assert any(array in fault.message for fault in races)
    assert all(fault.where.startswith("kernel.cu:") for fault in races)


def test_early_return() -> None:
    error = faults_of(block_sum, "BUG_EARLY_RETURN", n=100)
    assert "barrier" in error.kinds
    assert "have exited" in str(error) or "exits while" in str(error)


def test_early_return_can_be_allowed() -> None:
    with simt.config(strict_exit=False):
        error = faults_of(block_sum, "BUG_EARLY_RETURN", n=100)
    assert "barrier" not in error.kinds  # what is left is what the missing threads did not write


def test_two_different_barriers() -> None:
    error = faults_of(block_sum, "BUG_TWO_BARRIERS")
    divergent = [fault for fault in error.faults if fault.kind == "barrier"]
    assert divergent
    assert all("divergent" in fault.message for fault in divergent)


def test_two_barriers_on_one_line() -> None:
    args = (cp.empty(64, np.int32),)
    error = faults_of(kernel("block", "barriers_on_one_line"), (1,), (64,), args)
    assert error.kinds == {"barrier"}


def test_write_after_the_reads_of_others() -> None:
    args = (cp.empty(32, np.int32),)
    (fault,) = faults_of(kernel("block", "write_after_reads"), (1,), (32,), args).faults
    assert fault.kind == "race"
    assert fault.message.startswith("WAR hazard in shared memory")


def test_plain_read_after_the_atomics_of_others() -> None:
    args = (cp.empty(1, np.int32), cp.zeros(1, np.int32))
    (fault,) = faults_of(kernel("block", "read_after_own_atomic"), (1,), (40,), args).faults
    assert fault.kind == "race"
    assert fault.message.startswith("RAW hazard in global memory 'sum'")


def histogram(bug: str = "") -> None:
    keys = np.random.default_rng(0).integers(0, 100, 3000).astype(np.int32)
    counts = cp.zeros(100, np.int32)
    args = (counts, cp.asarray(keys), np.int32(3000), np.int32(100))
    kernel("block", "histogram", bug)((3,), (256,), args, shared_mem=400)
    np.testing.assert_array_equal(counts.get(), np.bincount(keys, minlength=100))


def test_shared_histogram() -> None:
    with simt.config(seeds=(0, 1, 2), compare_seeds="bitwise"):
        histogram()


def test_shared_histogram_not_cleared_in_time() -> None:
    assert faults_of(histogram, "BUG_NOT_CLEARED").kinds & {"race", "uninit"}


def test_halves_of_a_word_are_separate() -> None:
    x, y = cp.arange(64, dtype=np.uint16), cp.empty(64, np.uint16)
    kernel("block", "half_words")((1,), (64,), (y, x))
    np.testing.assert_array_equal(y.get(), x.get())


def test_bytes_of_a_word_are_separate() -> None:
    y = cp.empty(64, np.uint8)
    kernel("block", "bytes")((1,), (64,), (y.data.ptr,))
    np.testing.assert_array_equal(y.get(), np.arange(64))


def test_spinning_thread_lets_others_come_by() -> None:
    y = cp.zeros(1, np.int32)
    kernel("block", "spin")((1,), (64,), (cp.zeros(1, np.int32), y))
    assert y.get()[0] == 7
