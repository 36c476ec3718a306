"""Warp collectives."""

from __future__ import annotations

import numpy as np
import pytest

import simt

from . import cupy_standin as cp
from .planted_sources import faults_of, floats, kernel


def warp_sum(bug: str = "") -> None:
    x, y = floats(10, 32), cp.empty(10, np.float32)
    kernel("warp", "warp_sum", bug)((3,), (128,), (y, cp.asarray(x), np.int32(10)))
    np.testing.assert_allclose(y.get(), x.sum(1), rtol=1e-4, atol=1e-5)


def warp_reverse(bug: str = "") -> None:
    x, y = floats(128), cp.empty(128, np.float32)
    kernel("warp", "warp_reverse", bug)((1,), (128,), (y, cp.asarray(x)))
    np.testing.assert_array_equal(y.get().reshape(4, 32), x.reshape(4, 32)[:, ::-1])


@pytest.mark.parametrize("check", [True, False])
def test_right_kernels_pass(check: bool) -> None:
    with simt.config(check=check, seeds=(0, 1, 2, 3), compare_seeds="bitwise", preempt=5):
        warp_sum()
        warp_reverse()


@pytest.mark.parametrize("check", [True, False])
def test_lane_that_has_exited(check: bool) -> None:
    with simt.config(check=check):
        error = faults_of(warp_sum, "BUG_LANE_EXITS")
    assert error.kinds == {"shuffle"}
    assert "lane 31" in str(error)


def test_lane_that_has_exited_yields_poison() -> None:
    with simt.config(strict_shuffle=False), pytest.raises(AssertionError, match="nan"):
        warp_sum("BUG_LANE_EXITS")


@pytest.mark.parametrize("check", [True, False])
def test_lane_that_has_gone_on(check: bool) -> None:
    with simt.config(check=check):
        error = faults_of(warp_sum, "BUG_LANE_GOES_ON")
    (fault,) = error.faults
    assert fault.kind == "mask"
    assert "waits for it in another one" in fault.message


@pytest.mark.parametrize("bug", ["BUG_NO_SYNCWARP", "BUG_SHUFFLE_IS_NO_FENCE"])
def test_missing_syncwarp(bug: str) -> None:
    error = faults_of(warp_reverse, bug)
    assert "race" in error.kinds
    assert "staged" in str(error)


def test_mask_without_the_own_lane() -> None:
    error = faults_of(kernel("warp", "not_in_own_mask"), (1,), (32,), (cp.empty(32, np.int32),))
    assert error.kinds == {"mask"}
    assert "does not name" in str(error)


def test_width_that_is_no_power_of_two() -> None:
    error = faults_of(kernel("warp", "bad_width"), (1,), (32,), (cp.empty(32, np.int32),))
    assert error.kinds == {"mask"}
    assert "width 24" in str(error)


@pytest.mark.parametrize("seed", [0, 3, 4])
def test_values_of_collectives(seed: int) -> None:
    x = np.random.default_rng(0).integers(-2, 3, 64).astype(np.int32)
    y = cp.empty((7, 64), np.uint32)
    with simt.config(seeds=(seed,)):
        kernel("warp", "collectives")((1,), (64,), (cp.asarray(x), y))
    got, warps, lane = y.get(), x.reshape(2, 32), np.arange(32)

    def bits(flags: np.ndarray) -> np.ndarray:
        return (flags.astype(np.uint64) << lane.astype(np.uint64)).sum(-1).astype(np.uint32)

    def shuffled(source: np.ndarray) -> np.ndarray:
        return warps[:, source].reshape(-1).astype(np.uint32)

    votes = bits(warps > 0)
    np.testing.assert_array_equal(got[0], votes.repeat(32))
    np.testing.assert_array_equal(got[1], shuffled(lane // 8 * 8 + (lane + 3) % 8))
    np.testing.assert_array_equal(got[2], shuffled(np.where(lane % 16 < 2, lane, lane - 2)))
    np.testing.assert_array_equal(got[3], shuffled(np.where(lane + 5 < 32, lane + 5, lane)))
    np.testing.assert_array_equal(got[4], shuffled(lane ^ 9))
    any_all = (warps == 2).any(1) + 2 * (warps < 3).all(1)
    np.testing.assert_array_equal(got[5], any_all.repeat(32))
    np.testing.assert_array_equal(got[6][1::2], np.full(32, 0xAAAAAAAA))
    np.testing.assert_array_equal(got[6][::2], (votes & 0x55555555).repeat(16))
