"""R2, R3, R8, R9, R12 and R15 for attention."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphs
from graphs import G0, permuted_g0
from mha_calls import KINDS, backward, forward, inputs
from recipes.calls import G, X, assert_close, plain

EVERY = pytest.mark.parametrize("kind", KINDS)


def _gat(x: Any, y: Any, w: Any) -> dict[str, np.ndarray]:
    given = {"src_embedding": np.array(x, float), "attn_weights": np.array(w, float)}
    return given if y is None else {**given, "dst_embedding": np.array(y, float)}


# ---- R2


@EVERY
@pytest.mark.parametrize("value", [0.0, 1.0])
def test_r02_half_precision_denominator(device: Any, T: Any, kind: str, value: float) -> None:
    n = 70_000 if device.name == "host" else 3_000
    struct = plain([0, n], np.zeros(n, int), 1, bipartite=True).make(device, kind="csc")
    zero, one = np.zeros((1, 1)), np.ones((1, 1))
    arrays = {"query": zero, "key": one, "value": one * value}
    if kind != "mha_simple":
        weights = np.zeros(2 if kind == "mha_gat" else 1)
        arrays = {"src_embedding": one * value, "dst_embedding": zero, "attn_weights": weights}
    saved = forward(device, kind, struct, arrays, T, num_heads=1)
    assert_close(saved["output_embedding"], [[value]])
    assert saved["softmax_stats"][1, 0, 0] == n


# ---- R3


@pytest.mark.parametrize(
    ("logits", "expected"),
    [
        ([1000, 1001, -1000, -1001], [0.26894142, 0.73105858, 0.73105858, 0.26894142]),
        ([88.8, 89.8, 0, 0], [0.26894142, 0.73105858, 0.5, 0.5]),
        ([1e4, -1e4, -np.inf, 0], [1, 0, 0, 1]),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_r03_extreme_logits(device: Any, dtype: Any, logits: list[float], expected: Any) -> None:
    struct = plain([0, 2, 4], [0, 0, 0, 0], 1, bipartite=True).make(device, kind="csc")
    arrays = _gat(np.ones((1, 1)), np.zeros((2, 1)), [0, 0])
    arrays["edge_bias"] = np.array(logits)[:, None]
    saved = forward(device, "mha_gat", struct, arrays, dtype, num_heads=1)
    tolerance = 1e-8 if dtype == np.float64 else 1e-5
    np.testing.assert_allclose(saved["attention"][0], expected, atol=tolerance)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_r03_gat(device: Any, dtype: Any) -> None:
    struct = plain([0, 2, 4], [0, 1, 0, 1], 2, bipartite=True).make(device, kind="csc")
    arrays = _gat([[1000, 0], [1001, 0]], [[0, 0], [-5000, 0]], [1, 0, 1, 0])
    saved = forward(device, "mha_gat", struct, arrays, dtype, num_heads=1)
    atol = 1e-8 if dtype == np.float64 else 1e-4
    expected = [0.26894142, 0.73105858, 0.450166, 0.549834]
    np.testing.assert_allclose(saved["attention"][0], expected, rtol=0, atol=max(atol, 1e-6))
    out = [[1000.73105858, 0], [1000.549834, 0]]
    np.testing.assert_allclose(saved["output_embedding"], out, rtol=1e-7, atol=1e-6)
    d = backward(device, "mha_gat", struct, arrays, saved, np.eye(2), dtype, num_heads=1)
    atol = 1e-6 if dtype == np.float64 else 1e-4
    dx = [[0.07232949, 0.450166], [0.92767051, 0.549834]]
    np.testing.assert_allclose(d["grad_src"], dx, rtol=0, atol=atol)
    np.testing.assert_allclose(d["grad_dst"], np.zeros((2, 2)), rtol=0, atol=atol)


# ---- R8


@EVERY
@pytest.mark.parametrize("heads", [1, 8])
def test_r08_no_edges_then_one(device: Any, kind: str, heads: int) -> None:
    rng = np.random.default_rng(0)
    for src, dst in ([[], []], [[1], [2]]):
        graph = graphs.from_edges(src, dst, 4, 4)
        struct = graph.make(device, kind="csc")
        arrays = inputs(kind, graph, heads, 2, rng, edges=True)
        g = rng.standard_normal((4, 2 * heads))
        saved = forward(device, kind, struct, arrays, np.float64, num_heads=heads)
        d = backward(device, kind, struct, arrays, saved, g, np.float64, num_heads=heads)
        assert saved["attention"].tolist() == [[1.0] * len(src)] * heads
        if not src:
            assert saved["output_embedding"].tolist() == np.zeros((4, 2 * heads)).tolist()
            assert not any(a.any() for a in d.values())


# ---- R9


def test_r09_fewer_sources_than_destinations(device: Any) -> None:
    graph = plain([0, 1, 3, 4, 5], [0, 0, 1, 1, 1], 2, bipartite=True)
    struct = graph.make(device, kind="csc")
    arrays = _gat([[0], [0.1]], [[0], [0.1], [0.2], [0.3]], [1, 1])
    saved = forward(device, "mha_gat", struct, arrays, np.float64, num_heads=1)
    alpha = [1, 0.47502081, 0.52497919, 1, 1]
    np.testing.assert_allclose(saved["attention"][0], alpha, atol=1e-8)
    out = [[0], [0.05249792], [0.1], [0.1]]
    np.testing.assert_allclose(saved["output_embedding"], out, atol=1e-8)
    ones = np.ones((4, 1))
    d = backward(device, "mha_gat", struct, arrays, saved, ones, np.float64, num_heads=1)
    np.testing.assert_allclose(d["grad_src"], [[1.45008321], [2.54991679]], atol=1e-8)
    np.testing.assert_allclose(d["grad_dst"], np.zeros((4, 1)), atol=1e-15)
    np.testing.assert_allclose(d["grad_attn_weights"], [0.00249376, 0], atol=1e-8)


# ---- R12

GAT = _gat(X, None, [1, -0.5, 0.25, 1])
GAT_V2 = _gat(X, None, [1, -0.5])
DOT = {"query": X, "key": X, "value": X}


@pytest.fixture(params=[G0, permuted_g0()], ids=["g0", "permuted"])
def g0(request: pytest.FixtureRequest) -> graphs.GraphData:
    """G0, and G0 with another order inside columns: arrays of edges are the caller's."""
    return request.param


def _by_slot(alpha: list[float]) -> np.ndarray:
    """The caller's order of what the recipe lists by the slots of G0."""
    by_id = np.empty(6)
    by_id[G0.edge_ids] = alpha
    return by_id


def _assert_r12(device: Any, graph: Any, kind: str, arrays: Any, expected: dict[str, Any]) -> None:
    struct = graph.make(device, kind="csc")
    saved = forward(device, kind, struct, arrays, np.float64, num_heads=1)
    found = {**saved, **backward(device, kind, struct, arrays, saved, G, np.float64, num_heads=1)}
    found["attention"] = found["attention"][0]
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=0, atol=1e-8, err_msg=name)


def test_r12_gat(device: Any, g0: graphs.GraphData) -> None:
    expected = {
        "attention": [0.11405238, 0.58979766, 1, 0.13160165, 0.88594762, 0.27860069],
        "output_embedding": [
            [2.48676428, 0.89918333], [1, -2], [0, 0], [2.31119697, -0.06490008]
        ],
        "grad_src": [
            [0.54336047, 0.99824938], [2.00352291, -0.85368648],
            [0.02311239, 0.04547], [-0.11529581, -0.00815292],
        ],
        "grad_attn_weights": [1.39976775, -0.81785693, 0.36375997, -0.72751994],
    }  # fmt: skip
    _assert_r12(device, g0, "mha_gat", GAT, expected)


def test_r12_gat_v2(device: Any, g0: graphs.GraphData) -> None:
    alpha = [0.99477987, 0.00522013, 1, 0.24023104, 0.62116771, 0.13860125]
    expected = {
        "attention": _by_slot(alpha),
        "output_embedding": [[2.97650943, 0.51827044], [1, -2], [0, 0], [2.38093668, 0.03802366]],
        "grad_src": [
            [0.41677808, 0.75333087], [1.73689289, -0.67229319],
            [0.00054654, 0.01168397], [-0.1168288, 0.05225485],
        ],
        "grad_attn_weights": [0.03553324, -0.64066696],
    }  # fmt: skip
    _assert_r12(device, g0, "mha_gat_v2", GAT_V2, expected)


def test_r12_dot_products(device: Any, g0: graphs.GraphData) -> None:
    alpha = [0.99970603, 0.00029397, 1, 0.00244322, 0.58604366, 0.41151312]
    expected = {
        "attention": _by_slot(alpha),
        "output_embedding": [[2.99867712, 0.50102891], [1, -2], [0, 0], [2.58360044, 0.90540507]],
        "grad_query": [[0.00420814, -0.003273], [0, 0], [0, 0], [0.33826852, -0.3485446]],
        "grad_key": [
            [0.00456714, 0.00342536], [0.68203933, 0.50895786],
            [-0.00093514, 0.00187028], [-0.68567134, -0.5142535],
        ],
        "grad_value": [
            [0.00244322, 0.99755678], [1.58574969, -0.58604366],
            [0.00029397, 0], [0.41151312, -0.41151312],
        ],
    }  # fmt: skip
    _assert_r12(device, g0, "mha_simple", DOT, expected)


@EVERY
@pytest.mark.parametrize("heads", [1, 3, 4, 33])
@pytest.mark.parametrize("alike", [True, False], ids=["copies", "different"])
def test_r12_heads_are_single_heads_side_by_side(
    device: Any, kind: str, heads: int, alike: bool
) -> None:
    struct = G0.make(device, kind="csc")
    arrays = {"mha_gat": GAT, "mha_gat_v2": GAT_V2, "mha_simple": DOT}[kind]
    scales = [1.0 if alike else (1, 2, -1, 0.5)[h % 4] for h in range(heads)]
    single = []
    for scale in scales:
        one = {k: v if k == "attn_weights" else v * scale for k, v in arrays.items()}
        saved = forward(device, kind, struct, one, np.float64, num_heads=1)
        d = backward(device, kind, struct, one, saved, G, np.float64, num_heads=1)
        single.append((one, saved, d))

    def beside(name: str, parts: list[np.ndarray]) -> np.ndarray:
        if "weights" not in name:
            return np.hstack(parts)
        return np.concatenate(
            [
                np.concatenate(p)
                for p in zip(*(np.split(p, len(p) // 2) for p in parts), strict=True)
            ]
        )

    given = {k: beside(k, [one[k] for one, _, _ in single]) for k in arrays}
    saved = forward(device, kind, struct, given, np.float64, num_heads=heads)
    d = backward(device, kind, struct, given, saved, np.tile(G, heads), np.float64, num_heads=heads)
    expected = np.hstack([s["output_embedding"] for _, s, _ in single])
    np.testing.assert_allclose(saved["output_embedding"], expected, 1e-12, 1e-13)
    for name, value in d.items():
        expected = beside(name, [found[name] for _, _, found in single])
        np.testing.assert_allclose(value, expected, 1e-12, 1e-13, err_msg=name)


# ---- R15


@EVERY
def test_r15_upstream_gradients_with_strides(device: Any, kind: str) -> None:
    """Rows that overlap or lie apart are read as they are; columns apart are refused by name."""
    struct = G0.make(device, kind="csc")
    arrays = {"mha_gat": GAT, "mha_gat_v2": GAT_V2, "mha_simple": DOT}[kind]
    saved = forward(device, kind, struct, arrays, np.float64, num_heads=1)

    class Given:
        """Passes an array on as it is."""

        def __init__(self, g: Any) -> None:
            self.g = g

        def astype(self, dtype: Any) -> Any:
            return self

    class Keeps(type(device)):  # type: ignore[misc]
        def array(self, a: Any) -> Any:
            return a.g if isinstance(a, Given) else super().array(a)

    place = Keeps()

    def run(g: Any) -> dict[str, np.ndarray]:
        return backward(place, kind, struct, arrays, saved, g, np.float64, num_heads=1)

    wide = device.array(np.pad(np.repeat(G, 2, axis=0), [(0, 0), (1, 3)]))
    contiguous = run(G)
    for name, value in run(Given(wide[::2, 1:3])).items():
        assert value.tobytes() == contiguous[name].tobytes()
    ones = device.array(np.ones((1, 2)))
    if device.name == "host":
        constant = run(np.ones((4, 2)))
        for name, value in run(Given(np.broadcast_to(ones, (4, 2)))).items():
            assert value.tobytes() == constant[name].tobytes()
    fortran = device.array(np.ascontiguousarray(G.T)).T
    apart = device.array(np.repeat(G, 2, axis=1))[:, ::2]
    for g in (fortran, apart):
        with pytest.raises(ValueError, match="`grad_output` has strides .*, expected a last axis"):
            run(Given(g))
