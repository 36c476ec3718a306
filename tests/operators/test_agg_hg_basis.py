"""R-GCN aggregation against its oracle, on every device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import calls
import edgegrad
import graphs
import reference
from reference import agg_hg_basis
from tolerances import FLOATS

HALVES = [T for T in FLOATS if T.itemsize == 2]


def _cases(graph: graphs.GraphData, **sizes: int) -> list[reference.Case]:
    return list(agg_hg_basis.cases(graph, np.random.default_rng(7), **sizes))


def _chosen(graph: graphs.GraphData, **sizes: int) -> list[reference.Case]:
    """With and without weights, everything else at once."""
    cases = _cases(graph, **sizes)
    own = not graph.bipartite
    return [
        c
        for c in cases
        if c.reads["edge_weight"] is not None
        and c.options == {"concat_own": own, "norm_by_out_degree": True}
    ]


@pytest.mark.parametrize("name", graphs.NAMES)
def test_every_option(device: Any, T: Any, name: str) -> None:
    graph = graphs.make(name)
    struct = graph.make(device)
    for case in _cases(graph):
        ran = reference.run(case, graph, device, T, struct=struct)
        assert ran.worst() <= 1, case.name


@pytest.mark.parametrize("name", ["multi_edge", "more_sources", "bipartite"])
def test_both_index_widths(device: Any, IdxT: Any, name: str) -> None:
    graph = graphs.make(name)
    struct = graph.make(device, IdxT)
    for case in _cases(graph):
        ran = reference.run(case, graph, device, np.dtype(np.float32), IdxT, struct=struct)
        assert ran.worst() <= 1, case.name


@pytest.mark.parametrize("dim", [1, 3, 32, 128, 130])
@pytest.mark.parametrize("name", ["multi_edge", "bipartite", "star_hub"])
def test_dims(device: Any, T: Any, name: str, dim: int) -> None:
    if device.name == "simt" and name == "star_hub":
        pytest.skip("the kernels of the small graphs again, at many times the cost")
    graph = graphs.make(name)
    struct = graph.make(device)
    cases = _chosen(graph, dim=dim, n_bases=5)
    assert len(cases) >= 4
    for case in cases:
        ran = reference.run(case, graph, device, T, struct=struct)
        assert ran.worst() <= 1, case.name


@pytest.mark.parametrize("n_bases", [1, 2, 4, 9, 33])
def test_numbers_of_bases(device: Any, T: Any, n_bases: int) -> None:
    """Around the sums that a thread keeps, and more bases than lanes or types."""
    graph = graphs.make("multi_edge")
    struct = graph.make(device)
    for case in _chosen(graph, dim=4, n_bases=n_bases):
        ran = reference.run(case, graph, device, T, struct=struct)
        assert ran.worst() <= 1, case.name


@pytest.mark.parametrize("T", HALVES, ids=str)
def test_float32_companions(device: Any, T: Any) -> None:
    """Weights, edge weights and their gradients in float32 beside half features."""
    graph = graphs.make("more_sources")
    struct = graph.make(device)
    for case in _cases(graph):
        ran = reference.run(case, graph, device, T, companion_is_float=True, struct=struct)
        assert ran.worst() <= 1, case.name
        for name in ran.got.keys() & {"grad_weights", "grad_edge_weight"}:
            assert ran.got[name].dtype == np.float32


# ---- the example of the specification

X = [[1, -2], [3, 0.5], [-1.5, 4], [2, 1.5]]
W = [[1, 0], [0.5, 0.5], [-1, 2]]


def _forward(device: Any, T: Any, width: int, weights: Any, graph: Any, **options: Any) -> Any:
    out = device.poisoned((4, width), T)
    given = None if weights is None else device.array(np.array(weights, T))
    x = device.array(np.array(X, T))
    edgegrad.operators.agg_hg_basis_n2n_post_fwd(out, x, given, graph, **options)
    return device.numpy(out).astype(np.float64)


@pytest.mark.parametrize("permuted", [False, True])
def test_worked_example(device: Any, T: Any, IdxT: Any, permuted: bool) -> None:
    data = graphs.permuted_g0() if permuted else graphs.G0
    graph = data.make(device, IdxT)
    expected = [[1.5, 4.5, 0, 0], [1, -2, 0, 0], [0, 0, 0, 0], [0, -2.25, 6, 2.25]]
    np.testing.assert_array_equal(_forward(device, T, 4, W, graph), expected)
    with_own = np.concatenate([expected, X], axis=1)
    got = _forward(device, T, 6, W, graph, concat_own=True)
    np.testing.assert_array_equal(got, with_own)
    # Node 3 has two edges of type 1, from nodes 0 and 1; node 0 two of type 0.
    by_type = [[1.5, 4.5, 0, 0, 0, 0], [1, -2, 0, 0, 0, 0], [0] * 6, [0, 0, 4, -1.5, 2, 1.5]]
    np.testing.assert_array_equal(_forward(device, T, 6, None, graph), by_type)
    halved = np.array(by_type)
    halved[0, :2] /= 2
    halved[3, 2:4] /= 2
    got = _forward(device, T, 6, None, graph, norm_by_out_degree=True)
    np.testing.assert_array_equal(got, halved)


def test_worked_example_backward(device: Any, T: Any) -> None:
    graph = graphs.G0.make(device)
    v = np.array([[[1, 0], [0, 1]], [[0, 1], [1, 0]]], np.float64)  # of the recipe: basis matrices
    g_layer = np.array([[1, 0], [0, 1], [5, 5], [1, -1]])
    g = np.concatenate([g_layer @ v[0].T, g_layer @ v[1].T], axis=1)
    x, weights, g = (device.array(np.array(a, T)) for a in (X, W, g))
    dx, dw = device.poisoned((4, 2), T), device.poisoned((3, 2), T)
    edgegrad.operators.agg_hg_basis_n2n_post_bwd(dx, dw, g, x, weights, graph)
    np.testing.assert_array_equal(device.numpy(dx), [[0, 1], [1, 0], [1, 0], [-3, 3]])
    np.testing.assert_array_equal(device.numpy(dw), [[-0.5, 5.5], [5.5, -5.5], [0.5, -0.5]])


# ---- views into wider buffers


FILL = 7.0


class _Inside:
    """An array inside a wider buffer; rows begin at any address."""

    def __init__(self, device: Any, values: np.ndarray, shift: int, fill: float) -> None:
        pads = [(0, 0)] * (values.ndim - 2) + [(1, 2)] * (values.ndim > 1) + [(shift, 3)]
        padded = np.pad(values, pads, constant_values=values.dtype.type(fill))
        place = zip(pads, values.shape, strict=True)
        self.device, self.at = device, tuple(slice(a, n + a) for (a, _), n in place)
        self.whole = device.array(padded)
        self.view = self.whole[self.at]

    def around(self) -> np.ndarray:
        """The buffer with the array itself filled again."""
        whole = self.device.numpy(self.whole).astype(np.float64)
        whole[self.at] = FILL
        return whole


@pytest.mark.parametrize("shift", [1, 2, 5])
@pytest.mark.parametrize("dim", [4, 8])
def test_views(device: Any, T: Any, dim: int, shift: int) -> None:
    """Strided rows at odd addresses; what lies around an input is never read, or it would show."""
    graph = graphs.make("multi_edge")
    cases = [c for c in _cases(graph, dim=dim, n_bases=2) if all(c.options.values())]
    assert {c.reads["input_embedding"].ndim for c in cases} == {2, 3}
    for case in cases:
        made = calls.make(case, graph, device, T)
        buffers = {}
        for arg in case.args:
            if (a := made.arrays[arg.name]) is not None:
                fill = FILL if arg.written else np.nan
                buffers[arg.name] = _Inside(device, device.numpy(a), shift, fill)
                made.arrays[arg.name] = buffers[arg.name].view
        expected = case.oracle(calls.exact(case, T))
        for name, got in made().items():
            assert expected[name].worst(got) <= 1, (case.name, name)
            np.testing.assert_array_equal(buffers[name].around(), FILL)


def test_column_blocks_of_one_buffer(device: Any) -> None:
    """An output beside its input in the same rows, as layers that concatenate use it."""
    graph = graphs.make("power_law")
    struct = graph.make(device)
    x = np.random.default_rng(0).standard_normal((graph.n_src, 4)).astype(np.float32)
    width = 4 * graph.n_types
    whole = np.full((graph.n_src, 4 + width), np.nan, np.float32)
    whole[:, :4] = x
    buffer = device.array(whole)
    fwd = edgegrad.operators.agg_hg_basis_n2n_post_fwd
    fwd(buffer[:, 4:], buffer[:, :4], None, struct)
    apart = device.poisoned((graph.n_dst, width), np.float32)
    fwd(apart, device.array(x), None, struct)
    got = device.numpy(buffer)
    np.testing.assert_array_equal(got[:, :4], x)
    np.testing.assert_array_equal(got[:, 4:], device.numpy(apart))


@pytest.mark.parametrize("batch", [0, 1, 3])
def test_batches_are_independent(device: Any, T: Any, batch: int) -> None:
    """Node arrays of a batch are as if called one by one; parameter gradients are their sum."""
    graph, rng = graphs.make("multi_edge"), np.random.default_rng(3)
    struct = graph.make(device)
    x, g = (rng.standard_normal((batch, 5, d)).astype(T) for d in (3, 9))
    weights = rng.standard_normal((2, 2)).astype(T)
    fwd = edgegrad.operators.agg_hg_basis_n2n_post_fwd
    bwd = edgegrad.operators.agg_hg_basis_n2n_post_bwd

    def run(x: np.ndarray, g: np.ndarray) -> list[np.ndarray]:
        given = [device.array(a) for a in (g, x, weights)]
        made = [device.poisoned(s, T) for s in (g.shape, x.shape, weights.shape)]
        fwd(made[0], *given[1:], struct, True)
        bwd(*made[1:], *given, struct, True)
        return [device.numpy(a) for a in made]

    y, dx, dw = run(x, g)
    alone = [run(x[b], g[b]) for b in range(batch)]
    for b in range(batch):
        np.testing.assert_array_equal(y[b], alone[b][0])
        np.testing.assert_array_equal(dx[b], alone[b][1])
    total = sum((a[2].astype(np.float64) for a in alone), np.zeros((2, 2)))
    eps = 2.0**-7 if T.itemsize == 2 else 1e-5
    np.testing.assert_allclose(dw.astype(np.float64), total, rtol=4 * eps, atol=20 * eps)
