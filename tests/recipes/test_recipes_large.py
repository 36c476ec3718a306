"""R30: sizes and offsets beyond 32 bits, on memory that is hardly touched."""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edgegrad.operators import agg_hg_basis_n2n_post_bwd, agg_hg_basis_n2n_post_fwd
from recipes.calls import array_module, forward, plain

_NORESERVE = 0x4000  # mmap.MAP_NORESERVE, which Python has a name for since 3.13


def _untouched(device: Any, shape: tuple[int, int]) -> Any:
    """Zeros in float32 that take no memory until they are touched (on a GPU they take it all)."""
    xp = array_module(device)
    size = 4 * shape[0] * shape[1]
    if device.name == "cuda":
        xp.get_default_memory_pool().free_all_blocks()
        if xp.cuda.runtime.memGetInfo()[0] < size:
            pytest.skip(f"needs {size >> 30} GiB of free GPU memory")
    if device.name != "host":
        return xp.zeros(shape, np.float32)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE
    memory = mmap.mmap(-1, size, flags=flags)
    return np.frombuffer(memory, np.float32).reshape(shape)


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _ramp(device: Any, n: int, scale: float = 1) -> Any:
    return device.array(np.arange(1, n + 1, dtype=np.float32) * np.float32(scale))


def test_r30a_row_times_width_beyond_32_bits(device: Any) -> None:
    n, dim = 2_200_000, 1000
    struct = plain([0, 2], [n - 1, 0], n, bipartite=True).make(device)
    x = _untouched(device, (n, dim))
    x[-1] = _ramp(device, dim)
    before = _resident()
    out = forward(device, struct, x)
    np.testing.assert_array_equal(out[0], np.arange(1, dim + 1))
    dw = device.poisoned((2,), np.float32)
    g = device.array(np.ones((1, dim), np.float32))
    agg_hg_basis_n2n_post_bwd(None, None, g, x, None, struct, grad_edge_weight=dw)
    assert device.numpy(dw).tolist() == [dim * (dim + 1) / 2, 0]
    if device.name != "cuda":
        assert _resident() - before < 200 << 20  # x, of 8.8 GB, was not copied


@pytest.mark.parametrize("stride", [2**31 + 64, -(2**31) - 64], ids=["downwards", "upwards"])
def test_r30a_row_strides_beyond_32_bits(device: Any, stride: int) -> None:
    # Two rows of every array lie 8.6 GB apart, so every address has to be computed in 64 bits.
    apart, dim = abs(stride), 8
    struct = plain([0, 1, 2], [1, 0], 2).make(device)

    def rows() -> Any:
        return _untouched(device, (2, apart))[:: stride // apart, :dim]

    x, g, out, dx = rows(), rows(), rows(), rows()
    x[0], x[1] = _ramp(device, dim), _ramp(device, dim, 10)
    g[0], g[1] = _ramp(device, dim, -1), _ramp(device, dim, 3)
    for a in (out, dx):
        a[0], a[1] = np.nan, np.nan
    agg_hg_basis_n2n_post_fwd(out, x, None, struct)
    agg_hg_basis_n2n_post_bwd(dx, None, g, x, None, struct)
    ramp = np.arange(1, dim + 1)
    for a, first, second in ((out, 10, 1), (dx, 3, -1)):
        np.testing.assert_array_equal(device.numpy(a[0]), first * ramp)
        np.testing.assert_array_equal(device.numpy(a[1]), second * ramp)


def test_r30b_edges_times_width_beyond_32_bits(device: Any) -> None:
    edges, dim = 1_100_000, 2048
    if device.name == "simt":
        # 2^31 additions take minutes in the CPU run; with a width of one they take a second, and
        # the hub row is still cut into the same 2,149 pieces. The CUDA plan has no array of
        # edges x width, and the tests with far rows see to the addresses.
        dim = 1
    struct = plain([0, edges], np.zeros(edges, np.int32), 1).make(device)
    out = forward(device, struct, device.array(np.ones((1, dim), np.float32)))
    np.testing.assert_array_equal(out, np.full((1, dim), edges))


def test_r30c_wide_row(device: Any) -> None:
    dim = 2_200_000
    struct = plain([0, 1], [0], 1).make(device)
    values = np.random.default_rng(30).standard_normal((1, dim)).astype(np.float32)
    x = device.array(values)
    np.testing.assert_array_equal(forward(device, struct, x), values)
    dx = device.poisoned((1, dim), np.float32)
    agg_hg_basis_n2n_post_bwd(dx, None, x, x, None, struct)
    np.testing.assert_array_equal(device.numpy(dx), values)


def test_r30d_more_destinations_than_a_grid_axis(device: Any) -> None:
    n = 70_001
    struct = plain(np.arange(n + 1), np.zeros(n, np.int32), 1, bipartite=True).make(device)
    out = forward(device, struct, device.array(np.full((1, 1), 3, np.float32)))
    assert out.shape == (n, 1)
    assert (out == 3).all()
