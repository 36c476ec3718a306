"""Values of edges and their gradients against the oracle, on every device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import devices
import edgegrad
import graphs
import reference
from edgegrad.operators import sddmm_bwd, sddmm_fwd
from edgegrad.operators.sddmm import OPS
from reference import sddmm

FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)


def _cases(graph: graphs.GraphData, **sizes: int) -> list[reference.Case]:
    return list(sddmm.cases(graph, np.random.default_rng(7), **sizes))


@pytest.mark.parametrize("name", graphs.NAMES)
def test_every_op(device: Any, T: Any, name: str) -> None:
    graph = graphs.make(name)
    struct = graph.make(device)
    for case in _cases(graph, dim=3):
        ran = reference.run(case, graph, device, T, struct=struct)
        assert ran.worst() <= 1, case.name


@pytest.mark.parametrize(("heads", "dim"), [(1, 16), (3, 1), (4, 8), (33, 2), (2, 70), (1, 300)])
def test_heads_and_dims(device: Any, T: Any, IdxT: Any, heads: int, dim: int) -> None:
    """Whole packs and accesses, parts of them, more than a warp's worth, one channel."""
    graph = graphs.make("bipartite")
    struct = graph.make(device, IdxT, "csc")
    for case in _cases(graph, heads=heads, dim=dim):
        ran = reference.run(case, graph, device, T, IdxT, struct=struct)
        assert ran.worst() <= 1, case.name


@pytest.mark.parametrize("dim", [0, 5])
def test_no_channels(device: Any, dim: int) -> None:
    graph = graphs.make("multi_edge")
    for case in _cases(graph, dim=dim):
        ran = reference.run(case, graph, device, FLOAT32)
        assert ran.worst() <= 1, case.name


@pytest.mark.parametrize("dim", [1, 8])
def test_long_rows(device: Any, T: Any, dim: int) -> None:
    """Destinations and sources beyond the limit of both backends."""
    n = 9000 if device.name == "host" else 1100
    hub = np.full(n, 2)
    spread = np.arange(n) % 5
    ends = np.concatenate([hub, spread]), np.concatenate([spread, hub])
    graph = graphs.from_edges(*ends, 6, 5, bipartite=True)
    struct = graph.make(device)
    for case in _cases(graph, dim=dim, heads=2):
        ran = reference.run(case, graph, device, T, struct=struct)
        assert ran.worst() <= 1, case.name


def test_rows_apart(device: Any, T: Any) -> None:
    """Rows of wider arrays are read and written in place; heads must lie side by side."""
    graph = graphs.make("power_law")
    struct = graph.make(device)
    rng = np.random.default_rng(3)
    lhs = device.array(rng.standard_normal((graph.n_dst, 9)).astype(T))
    rhs = device.array(rng.standard_normal((graph.n_src, 12)).astype(T))
    output = device.poisoned((graph.n_edges, 11), T)
    sddmm_fwd(output[:, 3:7], lhs[:, 1:5], rhs[:, 4:8], struct, op="sub")
    ends = lhs, rhs
    at = graph.destinations, graph.indices
    exact = [device.numpy(x)[i].astype(np.float64) for x, i in zip(ends, at, strict=True)]
    expected = (exact[0][:, 1:5] - exact[1][:, 4:8]).astype(T)
    got = device.numpy(output)
    np.testing.assert_allclose(
        got[:, 3:7].astype(float), expected.astype(float), rtol=2e-2 if T.itemsize == 2 else 1e-5
    )
    assert np.isnan(got[:, [0, 1, 2, 7, 8, 9, 10]].astype(float)).all()
    gaps = device.array(np.ones((graph.n_dst, 2, 6), T))[..., :4]
    packed = device.array(np.ones((graph.n_src, 2, 4), T))
    with pytest.raises(edgegrad.ArgumentError, match=r"sddmm_fwd: `lhs` has strides .*, expected"):
        sddmm_fwd(device.poisoned((graph.n_edges, 2), T), gaps, packed, struct)


@pytest.mark.parametrize("op", OPS)
def test_gradient_is_the_derivative(device: Any, op: str) -> None:
    graph = graphs.make("more_sources")
    struct = graph.make(device)
    rng = np.random.default_rng(5)
    lhs, dl = rng.standard_normal((2, graph.n_dst, 2, 3))
    rhs, dr = rng.uniform(1, 2, (2, graph.n_src, 2, 3))
    g = rng.standard_normal((graph.n_edges, 2) if op == "dot" else (graph.n_edges, 2, 3))

    def forward(step: float) -> np.ndarray:
        output = device.poisoned(g.shape, FLOAT64)
        ends = device.array(lhs + step * dl), device.array(rhs + step * dr)
        sddmm_fwd(output, *ends, struct, op=op)
        return device.numpy(output)

    grads = [device.poisoned(x.shape, FLOAT64) for x in (lhs, rhs)]
    sddmm_bwd(*grads, *map(device.array, (g, lhs, rhs)), struct, op=op)
    numeric = (g * (forward(1e-6) - forward(-1e-6))).sum() / 2e-6
    along = sum((device.numpy(x) * d).sum() for x, d in zip(grads, (dl, dr), strict=True))
    np.testing.assert_allclose(along, numeric, rtol=1e-7)


def test_division_does_not_overflow_on_the_way(device: Any) -> None:
    """The square of the divisor is beyond float32, the gradient is not."""
    graph = graphs.make("one_node")
    one = device.array(np.ones((1, 1), np.float32))
    big = device.array(np.full((1, 1), 1e30, np.float32))
    grad = device.poisoned((1, 1), FLOAT32)
    sddmm_bwd(None, grad, big, big, big, graph.make(device), op="div")
    np.testing.assert_allclose(device.numpy(grad), -1, rtol=1e-6)
    sddmm_bwd(None, grad, one, one, big, graph.make(device), op="div")
    assert device.numpy(grad) == 0  # -1e-60


def test_nan_stays_with_its_edges(device: Any) -> None:
    graph = graphs.make("power_law")
    lhs, rhs = np.ones((graph.n_dst, 4), np.float32), np.ones((graph.n_src, 4), np.float32)
    lhs[1], rhs[2] = np.nan, np.inf
    output = device.poisoned((graph.n_edges,), FLOAT32)
    sddmm_fwd(output, device.array(lhs), device.array(rhs), graph.make(device))
    got = device.numpy(output)
    spoiled, infinite = graph.destinations == 1, graph.indices == 2
    assert np.isnan(got[spoiled]).all()
    assert np.isposinf(got[infinite & ~spoiled]).all()
    assert (got[~spoiled & ~infinite] == 4).all()


def test_operands_an_op_does_not_read_may_be_missing(device: Any) -> None:
    graph = graphs.make("more_sources")
    struct = graph.make(device)
    rng = np.random.default_rng(6)
    g = device.array(rng.standard_normal((graph.n_edges, 3)))
    for op, sign in (("add", 1), ("sub", -1)):
        grads = [device.poisoned((n, 3), FLOAT64) for n in (graph.n_dst, graph.n_src)]
        sddmm_bwd(*grads, g, None, None, struct, op=op)
        for got, ids, factor in zip(
            grads, (graph.destinations, graph.indices), (1, sign), strict=False
        ):
            expected = sddmm.gathered(ids, len(got), factor * device.numpy(g))
            np.testing.assert_allclose(device.numpy(got), expected, rtol=1e-12)
    sddmm_bwd(None, None, g, None, None, struct, op="mul")


def test_options_are_named() -> None:
    host, graph = devices.Host(), graphs.make("more_sources")
    struct = graph.make(host)
    lhs, rhs = np.ones((graph.n_dst, 2)), np.ones((graph.n_src, 2))
    out, grad = host.poisoned((graph.n_edges,), FLOAT64), host.poisoned(lhs.shape, FLOAT64)
    with pytest.raises(edgegrad.ArgumentError, match="sddmm_fwd: `op` is 'dots', expected 'dot' "):
        sddmm_fwd(out, lhs, rhs, struct, op="dots")
    missing = "sddmm_fwd: `rhs` has type NoneType, expected an array, since `op` is 'dot'"
    with pytest.raises(TypeError, match=missing):
        sddmm_fwd(out, lhs, None, struct)
    with pytest.raises(TypeError, match="sddmm_bwd: `rhs` has type NoneType"):
        sddmm_bwd(grad, None, np.ones(graph.n_edges), lhs, None, struct)
    with pytest.raises(ValueError, match=r"`output` has shape \(60,\), expected .*dim_out\]=2\)"):
        sddmm_fwd(out, lhs, rhs, struct, op="add")
    none = [np.ones((n, 0, 2)) for n in (graph.n_dst, graph.n_src)]
    with pytest.raises(ValueError, match="n_heads = 0, expected at least one head"):
        sddmm_fwd(np.ones((graph.n_edges, 0)), *none, struct)
    assert np.isnan(out).all()
    assert np.isnan(grad).all()
