"""Softmax of edge logits against its oracle, on every device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import softmax

import devices
import edgegrad
import graphs
import reference
from edgegrad.operators import edge_softmax_bwd, edge_softmax_fwd
from reference import edge_softmax

FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)


def _cases(graph: graphs.GraphData, **sizes: int) -> list[reference.Case]:
    return list(edge_softmax.cases(graph, np.random.default_rng(7), **sizes))


def _coefficients(device: Any, struct: Any, logits: np.ndarray, **options: Any) -> np.ndarray:
    output = device.poisoned(logits.shape, logits.dtype)
    edge_softmax_fwd(output, device.array(logits), struct, **options)
    return device.numpy(output)


@pytest.mark.parametrize("name", graphs.NAMES)
def test_every_option(device: Any, T: Any, name: str) -> None:
    graph = graphs.make(name)
    struct = graph.make(device)
    for case in _cases(graph):
        ran = reference.run(case, graph, device, T, struct=struct)
        assert ran.worst() <= 1, case.name


@pytest.mark.parametrize("heads", [1, 2, 3, 4, 16, 33])
def test_heads(device: Any, T: Any, IdxT: Any, heads: int) -> None:
    graph = graphs.make("more_sources")
    for case in _cases(graph, heads=heads):
        ran = reference.run(case, graph, device, T, IdxT)
        assert ran.worst() <= 1, case.name


def _long_rows(on_host: bool) -> graphs.GraphData:
    """Rows beyond the limit of both backends, one of them of exactly two pieces."""
    degrees = [0, 9000, 3, 8192, 1, 4097, 40] if on_host else [0, 1100, 3, 1024, 1, 513, 40]
    dst = np.repeat(np.arange(len(degrees)), degrees)
    src = np.arange(len(dst)) % 11
    return graphs.from_edges(src, dst, 11, len(degrees), n_types=2)


@pytest.mark.parametrize("heads", [1, 3])
def test_long_rows(device: Any, T: Any, heads: int) -> None:
    graph = _long_rows(device.name == "host")
    for case in _cases(graph, heads=heads):
        ran = reference.run(case, graph, device, T)
        assert ran.worst() <= 1, case.name


@pytest.mark.parametrize("spread", [0.1, 3.0, 30.0, 300.0])
def test_coefficients_are_accurate(device: Any, spread: float) -> None:
    graph = graphs.make("power_law")
    x = spread * np.random.default_rng(1).standard_normal((graph.n_edges, 2))
    for T, bound in ((FLOAT32, 2e-6), (FLOAT64, 1e-12)):
        rounded = x.astype(T)
        expected = edge_softmax.forward(graph, rounded.astype(np.float64), "dst")
        got = _coefficients(device, graph.make(device), rounded)
        assert np.abs(got - expected).max() <= bound


def test_exponentials_are_accurate(device: Any) -> None:
    """Two edges with logits 0 and -t have coefficients 1 / (1 + exp t) and so on: exp, checked
    relative to its own size over the whole range of normal numbers."""
    for T, deepest, bound in ((FLOAT32, 87.0, 4e-7), (FLOAT64, 708.0, 8e-16)):
        t = np.linspace(0, deepest, 4001).astype(T)
        x = np.stack([np.zeros_like(t), -t])  # two edges, one head for each t
        graph = graphs.GraphData(
            np.array([0, 2]), np.array([0, 1]), np.zeros(2, np.int32), 2, 1, bipartite=True
        )
        got = _coefficients(device, graph.make(device), x)[1]
        expected = softmax(x.astype(np.float64), axis=0)[1]
        assert np.abs(got / expected - 1).max() <= bound


@pytest.mark.parametrize("scope", edge_softmax.SCOPES)
def test_shift_of_one_destination_changes_no_other(device: Any, T: Any, scope: str) -> None:
    graph = graphs.make("star_hub")
    struct = graph.make(device)
    x = np.random.default_rng(2).integers(-4, 5, (graph.n_edges, 3)).astype(T)
    before = _coefficients(device, struct, x, scope=scope)
    mine = graph.destinations == 3
    shifted = x.copy()
    shifted[mine] = (x[mine].astype(np.float64) + 1e4).astype(T)
    after = _coefficients(device, struct, shifted, scope=scope)
    assert before[~mine].tobytes() == after[~mine].tobytes()
    if T.itemsize >= 4:  # integers of that size are exact, so the row itself is the same too
        assert before[mine].tobytes() == after[mine].tobytes()


def _rows(*logits: list[float]) -> tuple[graphs.GraphData, np.ndarray]:
    """A destination for each list, with its logits."""
    offsets = np.cumsum([0, *map(len, logits)])
    n = int(offsets[-1])
    types = np.zeros(n, np.int32)
    graph = graphs.GraphData(offsets, np.arange(n), types, n, 1, bipartite=True)
    return graph, np.concatenate(logits)


def test_values_that_are_not_finite(device: Any, T: Any) -> None:
    nan, inf = np.nan, np.inf
    graph, x = _rows(
        [0, 0], [-inf, 0, -inf, 0], [nan, 0], [0, nan, -inf], [inf, 0], [-inf], [-inf, -inf],
        [inf, inf], [], [-inf, 5],
    )  # fmt: skip
    expected = [
        0.5, 0.5, 0, 0.5, 0, 0.5, nan, nan, nan, nan, nan, nan, nan, nan, nan, nan, nan, nan, 0, 1,
    ]  # fmt: skip
    got = _coefficients(device, graph.make(device), x.astype(T)).astype(np.float64)
    np.testing.assert_array_equal(got, expected)


def test_pieces_that_are_not_finite(device: Any) -> None:
    """A whole piece of -inf beside a finite one, and a NaN in the last piece of a long row."""
    n = 9000 if device.name == "host" else 1100
    masked, poisoned = np.full(n, -np.inf), np.zeros(n)
    masked[-1], poisoned[-1] = 2, np.nan
    graph, x = _rows(list(masked), list(poisoned), [1.0], [-np.inf] * n)
    got = _coefficients(device, graph.make(device), x)
    np.testing.assert_array_equal(got[:n], np.append(np.zeros(n - 1), 1))
    assert np.isnan(got[n : 2 * n]).all()
    assert got[2 * n] == 1
    assert np.isnan(got[2 * n + 1 :]).all()


def test_half_types_sum_wide(device: Any, T: Any) -> None:
    """The denominator of 70,000 equal logits does not fit in float16 (on simt: of 3,000)."""
    n = 70_000 if device.name == "host" else 3000
    graph, x = _rows([0.0] * n)
    got = _coefficients(device, graph.make(device), x.astype(T))
    np.testing.assert_array_equal(got, np.array(1 / n).astype(T))


def test_rows_apart(device: Any, T: Any) -> None:
    """Edge arrays may be columns of wider ones."""
    graph = graphs.make("power_law")
    struct = graph.make(device)
    rng = np.random.default_rng(4)
    wide = rng.standard_normal((graph.n_edges, 7)).astype(T)
    output = device.poisoned((graph.n_edges, 9), T)
    edge_softmax_fwd(output[:, 2:6], device.array(wide)[:, 1:5], struct)
    alone = _coefficients(device, struct, wide[:, 1:5].copy())
    got = device.numpy(output)
    # Packs may be joined in another order where edges do not lie side by side.
    np.testing.assert_allclose(
        got[:, 2:6].astype(float), alone.astype(float), rtol=2e-2 if T.itemsize == 2 else 1e-6
    )
    assert np.isnan(got[:, [0, 1, 6, 7, 8]].astype(float)).all()


@pytest.mark.parametrize("scope", edge_softmax.SCOPES)
def test_gradient_is_the_derivative(device: Any, scope: str) -> None:
    graph = graphs.make("more_sources")
    struct = graph.make(device)
    rng = np.random.default_rng(5)
    x, g, v = rng.standard_normal((3, graph.n_edges, 2))
    y = _coefficients(device, struct, x, scope=scope)
    grad = device.poisoned(x.shape, FLOAT64)
    edge_softmax_bwd(grad, device.array(g), device.array(y), struct, scope=scope)
    step = 1e-6
    up, down = (_coefficients(device, struct, x + s * v, scope=scope) for s in (step, -step))
    numeric = (g * (up - down)).sum() / (2 * step)
    np.testing.assert_allclose((device.numpy(grad) * v).sum(), numeric, rtol=1e-7)


def test_options_are_named() -> None:
    host, graph = devices.Host(), graphs.make("more_sources")
    x, y = np.ones(graph.n_edges), np.full(graph.n_edges, np.nan)
    struct = graph.make(host)
    expected = r"edge_softmax_fwd: `scope` is 'src', expected 'dst' or 'dst_and_type'"
    with pytest.raises(edgegrad.ArgumentError, match=expected):
        edge_softmax_fwd(y, x, struct, scope="src")
    plain = graph.make(host, kind="csc")
    with pytest.raises(ValueError, match="`scope` is 'dst_and_type', expected 'dst', since"):
        edge_softmax_bwd(y, x, x, plain, scope="dst_and_type")
    with pytest.raises(ValueError, match="`logits` has n_heads = 0, expected at least one head"):
        edge_softmax_fwd(np.ones((graph.n_edges, 0)), np.ones((graph.n_edges, 0)), struct)
    assert np.isnan(y).all()
    edge_softmax_fwd(y, x, plain)
    assert not np.isnan(y).any()
