"""Blocks against each other."""

from __future__ import annotations

import numpy as np
import pytest

import simt

from . import cupy_standin as cp
from .planted_sources import faults_of, kernel


def count(bug: str = "") -> None:
    keys = np.random.default_rng(0).integers(0, 50, 5000)
    counts = cp.zeros(50, np.int32)
    kernel("grid", "count", bug)((4,), (256,), (counts, cp.asarray(keys), np.int64(5000)))
    np.testing.assert_array_equal(counts.get(), np.bincount(keys, minlength=50))


@pytest.mark.parametrize("check", [True, False])
def test_atomic_counter(check: bool) -> None:
    with simt.config(check=check, seeds=(0, 1, 2), compare_seeds="bitwise"):
        count()


def test_counter_that_is_not_atomic() -> None:
    error = faults_of(count, "BUG_NOT_ATOMIC")
    assert error.kinds == {"race"}
    assert "'counts'" in str(error)


def scatter(values: np.ndarray) -> None:
    rows = np.random.default_rng(0).integers(0, 3, values.size).astype(np.int32)
    args = (cp.zeros(3, np.float32), cp.asarray(values), cp.asarray(rows), np.int32(values.size))
    kernel("grid", "scatter_add")((7,), (64,), args)


def test_float_atomics_depend_on_the_schedule() -> None:
    rng = np.random.default_rng(0)
    values = (rng.standard_normal(400) * 10.0 ** rng.integers(-3, 4, 400)).astype(np.float32)
    scatter(values)
    with simt.config(seeds=(0, 1, 2), compare_seeds="bitwise"):
        error = faults_of(scatter, values)
    assert error.kinds == {"nondeterministic"}
    assert "`output`" in str(error)
    with simt.config(seeds=(0, 1, 2), compare_seeds=1e-3):
        scatter(values)


def test_every_schedule_starts_from_the_same_values() -> None:
    with simt.config(seeds=(0, 1, 2), compare_seeds="bitwise"):
        scatter(np.ones(400, np.float32))


def test_blocks_that_write_the_same_place() -> None:
    write = kernel("grid", "all_blocks_write")
    write((1,), (32,), (cp.empty(32, np.float32),))
    (fault,) = faults_of(write, (2,), (32,), (cp.empty(32, np.float32),)).faults
    assert fault.kind == "race"
    assert fault.message.startswith("WAW hazard in global memory 'to'")
    assert fault.count == 32


def order(seed: int, check: bool = True, preempt: int = 3) -> list[int]:
    log, length = cp.empty(3 * 4 * 64, np.int32), cp.zeros(1, np.int32)
    with simt.config(seeds=(seed,), check=check, preempt=preempt):
        kernel("grid", "append")((4,), (64,), (log, length))
    return log.get().tolist()


@pytest.mark.parametrize("check", [True, False])
def test_schedules(check: bool) -> None:
    canonical, first, second = (order(seed, check) for seed in (0, 1, 2))
    assert canonical == sorted(canonical)
    assert sorted(first) == sorted(second) == canonical
    assert first != second
    assert first == order(1, check)


def test_preemption() -> None:
    def interrupted(log: list[int]) -> int:
        """Threads that others came between."""
        return sum(log.count(t) != 3 or log[log.index(t) + 2] != t for t in set(log))

    assert interrupted(order(0)) == 0
    assert interrupted(order(1, preempt=2)) > interrupted(order(1, preempt=100)) > 0


def last_block_sum(bug: str = "") -> float:
    x, y = cp.arange(500, dtype=np.float32), cp.empty(1, np.float32)
    args = (y, cp.empty(8, np.float32), cp.zeros(1, np.uint32), x, np.int32(500))
    kernel("grid", "last_block_sum", bug)((8,), (64,), args)
    return y.get()[0]


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_last_block_reduces(seed: int) -> None:
    with simt.config(seeds=(seed,)):
        assert last_block_sum() == 499 * 250


def test_last_block_reduces_without_a_fence() -> None:
    error = faults_of(last_block_sum, "BUG_NO_FENCE")
    assert error.kinds == {"race"}
    assert "'parts'" in str(error)


def test_reader_that_does_not_acquire() -> None:
    args = (cp.zeros(2, np.int32), cp.zeros(1, np.int32), cp.zeros(1, np.int32))
    error = faults_of(kernel("grid", "publish"), (2,), (1,), args)
    assert error.kinds == {"race"}
    assert "'value'" in str(error)
