"""Gradients of R-GCN aggregation: central differences, adjoint identity, bilinearity."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import devices
import graphs
from edgegrad.operators import agg_hg_basis_n2n_post_bwd, agg_hg_basis_n2n_post_fwd
from graphs import GraphData

Parameters = dict[str, np.ndarray]  # x, and where they are used weights, edge_weight
STEP = 1e-3


class Layer:
    """<g, forward> as a function of x, W and w, and its gradients, on any device in float64."""

    def __init__(
        self, graph: GraphData, device: Any, parameters: Parameters, own: bool, norm: bool
    ) -> None:
        self.graph, self.device, self.struct = graph, device, graph.make(device)
        self.options = {"concat_own": own, "norm_by_out_degree": norm}
        x, weights = parameters["x"], parameters.get("weights")
        blocks = (graph.n_types if weights is None else weights.shape[1]) + own
        shape = (*x.shape[:-2], graph.n_dst, x.shape[-1] * blocks)
        self.g = np.random.default_rng(5).standard_normal(shape)

    def _given(self, p: Parameters) -> tuple[Any, Any, Any]:
        on = {k: self.device.array(a) for k, a in p.items()}
        return on["x"], on.get("weights"), on.get("edge_weight")

    def forward(self, p: Parameters) -> np.ndarray:
        out = self.device.poisoned(self.g.shape, np.float64)
        x, weights, edges = self._given(p)
        agg_hg_basis_n2n_post_fwd(out, x, weights, self.struct, **self.options, edge_weight=edges)
        return self.device.numpy(out)

    def gradients(self, p: Parameters, g: np.ndarray | None = None) -> Parameters:
        """Of every parameter that is given; the edge weight's also where it is one."""
        x, weights, edges = self._given(p)
        shapes = {"x": x.shape, "edge_weight": (self.graph.n_edges,)}
        if weights is not None:
            shapes["weights"] = weights.shape
        out = {k: self.device.poisoned(s, np.float64) for k, s in shapes.items()}
        agg_hg_basis_n2n_post_bwd(
            out["x"],
            out.get("weights"),
            self.device.array(self.g if g is None else g),
            x,
            weights,
            self.struct,
            **self.options,
            edge_weight=edges,
            grad_edge_weight=out["edge_weight"],
        )
        return {k: self.device.numpy(a) for k, a in out.items()}

    def value(self, p: Parameters) -> float:
        return float((self.g * self.forward(p)).sum())


def _parameters(graph: GraphData, weights: bool, edges: bool, batched: bool = False) -> Parameters:
    rng = np.random.default_rng(4)
    p = {"x": rng.standard_normal((2, graph.n_src, 3) if batched else (graph.n_src, 3))}
    if weights:
        p["weights"] = rng.standard_normal((graph.n_types, 2))
    if edges:
        p["edge_weight"] = rng.standard_normal(graph.n_edges)
    return p


def _central(f: Callable[[Parameters], float], p: Parameters, name: str, d: np.ndarray) -> float:
    return (f({**p, name: p[name] + STEP * d}) - f({**p, name: p[name] - STEP * d})) / (2 * STEP)


def _units(shape: tuple[int, ...]) -> Iterator[np.ndarray]:
    for i in range(int(np.prod(shape))):
        unit = np.zeros(shape)
        unit.flat[i] = 1
        yield unit


OPTIONS = list(itertools.product((False, True), repeat=5))  # weights, edges, own, norm, batched


@pytest.mark.parametrize("options", OPTIONS, ids=lambda o: "".join("-+"[v] for v in o))
@pytest.mark.parametrize("name", ["multi_edge", "more_sources"])
def test_central_differences(device: Any, name: str, options: tuple[bool, ...]) -> None:
    """Of every entry on the host, of two directions elsewhere."""
    with_weights, with_edges, own, norm, batched = options
    graph = graphs.make(name)
    p = _parameters(graph, with_weights, with_edges, batched)
    layer = Layer(graph, device, p, own, norm)
    gradients = layer.gradients(p)
    rng = np.random.default_rng(6)
    if not with_edges:  # its gradient is that at one
        p["edge_weight"] = np.ones(graph.n_edges)
        np.testing.assert_array_equal(layer.gradients(p)["edge_weight"], gradients["edge_weight"])
    for k, a in p.items():
        every = device.name == "host" and name == "multi_edge"
        for d in _units(a.shape) if every else rng.standard_normal((2, *a.shape)):
            expected = _central(layer.value, p, k, d)
            assert abs((gradients[k] * d).sum() - expected) <= 1e-8 * max(1, abs(expected)), k


@pytest.mark.parametrize("options", OPTIONS, ids=lambda o: "".join("-+"[v] for v in o))
def test_adjoint(device: Any, options: tuple[bool, ...]) -> None:
    """<F x, y> = <x, F* y>, and the same number by the edge weights and the basis weights."""
    with_weights, with_edges, own, norm, batched = options
    graph = graphs.make("bipartite" if not own else "power_law")
    p = _parameters(graph, with_weights, with_edges, batched)
    layer = Layer(graph, device, p, own, norm)
    left, gradients = layer.value(p), layer.gradients(p)
    np.testing.assert_allclose((gradients["x"] * p["x"]).sum(), left, rtol=1e-12)
    if own:
        left -= (layer.g[..., -3:] * p["x"][..., : graph.n_dst, :]).sum()
    edges = p.get("edge_weight", np.ones(graph.n_edges))
    np.testing.assert_allclose((gradients["edge_weight"] * edges).sum(), left, rtol=1e-11)
    if with_weights:
        np.testing.assert_allclose((gradients["weights"] * p["weights"]).sum(), left, rtol=1e-11)


def test_second_derivatives_are_the_same_functions() -> None:
    """The gradient in x is linear in W: its derivative is the backward of another W."""
    graph, device = graphs.make("multi_edge"), devices.Host()
    p = _parameters(graph, weights=True, edges=True)
    layer, rng = Layer(graph, device, p, False, True), np.random.default_rng(8)
    dW, v = rng.standard_normal(p["weights"].shape), rng.standard_normal(p["x"].shape)
    changed = layer.gradients({**p, "weights": p["weights"] + dW})["x"]
    difference = ((changed - layer.gradients(p)["x"]) * v).sum()
    np.testing.assert_allclose(difference, (layer.gradients({**p, "x": v})["weights"] * dW).sum())


def test_linear_in_each(device: Any) -> None:
    graph = graphs.make("multi_edge")
    p = _parameters(graph, weights=True, edges=True)
    layer = Layer(graph, device, p, False, False)
    once = layer.forward(p)
    for k in p:
        np.testing.assert_array_equal(layer.forward({**p, k: 2 * p[k]}), 2 * once)
        np.testing.assert_array_equal(layer.forward({**p, k: 0 * p[k]}), 0 * once)


@pytest.mark.parametrize("own", [False, True])
def test_rows_without_edges(device: Any, T: Any, own: bool) -> None:
    """Idle destinations write 0 and pass nothing back but their own row; idle types get 0."""
    graph = graphs.from_edges([0, 1, 0], [1, 1, 3], 6, 5, n_types=1)
    graph = GraphData(graph.offsets, graph.indices, graph.edge_types * 0 + 2, 6, 4)
    struct, rng = graph.make(device), np.random.default_rng(9)
    x, weights = rng.standard_normal((6, 2)).astype(T), rng.standard_normal((4, 3)).astype(T)
    g = rng.standard_normal((5, 6 + 2 * own)).astype(T)
    idle = [0, 2, 4]
    g[idle, :6] = np.nan
    out = [device.poisoned(a.shape, T) for a in (g, x, weights)]
    given = [device.array(a) for a in (g, x, weights)]
    agg_hg_basis_n2n_post_fwd(out[0], *given[1:], struct, own)
    agg_hg_basis_n2n_post_bwd(*out[1:], *given, struct, own)
    y, dx, dw = (device.numpy(a).astype(np.float64) for a in out)
    assert (y[idle, :6] == 0).all()
    assert (dx[5] == 0).all()
    assert (dw[[0, 1, 3]] == 0).all()
    assert (dw[2] != 0).all()
    assert not np.isnan(dx).any()
    assert not np.isnan(dw).any()
    if own:
        np.testing.assert_array_equal(y[:, 6:], x[:5])
        np.testing.assert_array_equal(dx[idle[1:]], g[idle[1:], 6:])
