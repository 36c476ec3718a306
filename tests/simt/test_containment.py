"""Launches that never end or crash are stopped, reported, and leave the process as it was."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import simt

from . import cupy_standin as cp
from .planted_sources import faults_of, kernel


def ints(n: int = 32) -> cp.ndarray:
    return cp.zeros(n, np.int32)


@pytest.fixture(autouse=True)
def machine_still_works_afterwards() -> object:
    yield
    x, y = cp.arange(32, dtype=np.float32), cp.empty(32, np.float32)
    kernel("memory", "copy")((1,), (32,), (y, x, np.int32(32)))
    np.testing.assert_array_equal(y.get(), x.get())


@pytest.mark.parametrize("check", [True, False])
def test_deadlock(check: bool) -> None:
    with simt.config(check=check):
        error = faults_of(kernel("block", "barrier_against_warp"), (1,), (32,), (ints(),))
    (fault,) = error.faults
    assert fault.kind == "deadlock"
    assert "threads 0..15 wait in __syncthreads at kernel.cu:" in fault.message
    assert "threads 16..31 wait in a warp collective, mask ffffffff" in fault.message


@pytest.mark.parametrize("check", [True, False])
def test_step_limit(check: bool) -> None:
    with simt.config(check=check, step_limit=10_000):
        error = faults_of(kernel("block", "endless"), (1,), (32,), (ints(),))
    (fault,) = error.faults
    assert fault.kind == "timeout"
    assert "limit of 10000 steps" in fault.message


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize("name", ["endless", "endless_arithmetic"])
def test_watchdog(name: str, check: bool) -> None:
    args = (ints(),) if name == "endless" else (cp.zeros(1, np.uint32), np.uint32(1))
    with simt.config(check=check, timeout_ms=50):
        error = faults_of(kernel("block", name), (1,), (1,), args)
    assert error.kinds == {"timeout"}
    assert "time limit" in str(error)


@pytest.mark.parametrize("check", [True, False])
def test_integer_division_by_zero(check: bool) -> None:
    with simt.config(check=check):
        error = faults_of(kernel("memory", "divide"), (1,), (1,), (ints(1), np.int32(0)))
    assert error.kinds == ({"undefined"} if check else {"crash"})


def test_stack_overflow() -> None:
    with simt.config(check=False):
        error = faults_of(kernel("memory", "deep"), (1,), (1,), (ints(1), np.int32(80000)))
    assert "local memory" in str(error)


def test_trap() -> None:
    error = faults_of(kernel("block", "trap"), (1,), (1,), (ints(1),))
    (fault,) = error.faults
    assert fault.kind == "trap"
    assert fault.where.startswith("kernel.cu:")


def test_threads_take_turns() -> None:
    rotate = kernel("memory", "rotate")
    results: list[bool] = []

    def work(i: int) -> None:
        x, y = cp.full(64, i, np.float32), cp.empty(64, np.float32)
        for _ in range(20):
            rotate((1,), (64,), (y, x), shared_mem=256)
        results.append(bool((y == x).all()))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 4
