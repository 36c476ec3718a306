"""R1, R2, R4 to R6, R11, R13, R14, R16, R24, R25 and R30 for plain aggregates and spmm."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import edgegrad
from devices import Host
from edgegrad import AggOp
from edgegrad.operators import agg_simple_n2n_fwd, pool_n2s_fwd
from graphs import G0, GraphData, permuted_g0
from recipes.aggregates import by_edge_id, product, simple, simple_back, weighted
from recipes.calls import (
    MEAN,
    MEAN_DX,
    SUM,
    SUM_DX,
    WEIGHTED,
    WEIGHTED_DW,
    WEIGHTED_DX,
    G,
    W,
    X,
    array_module,
    assert_close,
    plain,
)
from tolerances import bfloat16

BASIC = (AggOp.Sum, AggOp.Mean, AggOp.Min, AggOp.Max)


def _make(graph: GraphData, device: Any, IdxT: Any = np.int32) -> Any:
    return graph.make(device, IdxT, "csc")


def _hub(n_edges: int) -> GraphData:
    return plain([0, n_edges], np.zeros(n_edges), 1)


@pytest.mark.parametrize(
    ("T", "value", "total"),
    [
        (np.dtype(np.float16), 1.0, 6000),
        (np.dtype(np.float16), 1.1, 6596),
        (bfloat16, 1.0, 6016),
        (bfloat16, 1.1, 6624),
    ],
    ids=str,
)
def test_r01_half_hub(device: Any, T: Any, value: float, total: int) -> None:
    struct, x = _make(_hub(6000), device), device.array(np.full((1, 1), value, T))
    assert simple(device, struct, x, AggOp.Sum)[0].item() == total
    if value == 1.0:
        assert simple_back(device, struct, x, AggOp.Sum).item() == total


def test_r01_float32_hub() -> None:
    n = 2**25
    offsets, indices = np.array([0, n], np.int32), np.zeros(n, np.int32)
    struct = edgegrad.make_csc(offsets, indices, n_src_nodes=1)
    x, output = np.ones((1, 1), np.float32), np.full((1, 1), np.nan, np.float32)
    agg_simple_n2n_fwd(output, x, struct)
    assert output.item() == n
    nodes = np.ones((n, 1), np.float32)
    pool_n2s_fwd(output, nodes, offsets)
    assert output.item() == n


def test_r02_half_mean_does_not_overflow(device: Any) -> None:
    struct, x = _make(_hub(4096), device), device.array(np.full((1, 1), 40, np.float16))
    assert simple(device, struct, x, AggOp.Mean)[0].item() == 40.0


@pytest.mark.parametrize("op", tuple(AggOp), ids=str)
def test_r04_no_edges(device: Any, T: Any, op: AggOp) -> None:
    struct = _make(plain([0, 0, 0], [], 2), device)
    x = device.array(np.arange(1, 9).reshape(2, 4).astype(T))
    output, extrema = simple(device, struct, x, op)
    assert_close(output, np.zeros((2, 4)))
    if extrema is not None:
        assert (device.numpy(extrema) == -1).all()
    if not op.is_spread:
        assert_close(simple_back(device, struct, x, op, extrema), np.zeros((2, 4)))


@pytest.mark.parametrize(
    ("op", "out", "arg", "dx"),
    [
        (
            AggOp.Max,
            [[3, 4], [1, -2], [0, 0], [3, 1.5]],
            [[4, 0], [2, 2], [-1, -1], [1, 3]],
            [[0, 1], [2, 0], [0, 0], [0, -1]],
        ),
        (
            AggOp.Min,
            [[-1.5, 0.5], [1, -2], [0, 0], [1, -2]],
            [[0, 4], [2, 2], [-1, -1], [5, 5]],
            [[1, 0], [0, 0], [1, 0], [0, 0]],
        ),
    ],
    ids=["max", "min"],
)
@pytest.mark.parametrize("graph", [G0, permuted_g0()], ids=["g0", "permuted"])
def test_r05_extrema(
    device: Any, T: Any, IdxT: Any, graph: GraphData, op: AggOp, out: Any, arg: Any, dx: Any
) -> None:
    struct = _make(graph, device, IdxT)
    x, g = device.array(X.astype(T)), device.array(G.astype(T))
    output, extrema = simple(device, struct, x, op)
    assert_close(output, out)
    at = device.numpy(extrema)
    assert np.where(at < 0, -1, graph.edge_ids[at]).tolist() == arg
    assert_close(simple_back(device, struct, g, op, extrema), dx)


def test_r06_extrema_of_one_sign(device: Any, T: Any) -> None:
    struct = _make(plain([0, 2, 3], [0, 2, 1], 3, bipartite=True), device)
    x = np.array([[-0.1], [-0.2], [-0.3]], T)
    assert_close(simple(device, struct, device.array(x), AggOp.Max)[0], x[:2])
    assert_close(simple(device, struct, device.array(-x), AggOp.Min)[0], -x[:2])


def test_r11_parallel_edges(device: Any) -> None:
    struct = _make(plain([0, 3], [0, 0, 1], 2, bipartite=True), device)
    x, w, g = (device.array(np.array(a, float)) for a in ([[1], [4]], [2, -3, 1], [[1]]))
    assert simple(device, struct, x, AggOp.Sum)[0].item() == 6
    assert simple(device, struct, x, AggOp.Mean)[0].item() == 2
    assert weighted(device, struct, x, w, AggOp.Sum, g)[0].item() == 3
    assert product(device, struct, w, x, g)[0].item() == 3


@pytest.mark.parametrize("graph", [G0, permuted_g0()], ids=["g0", "permuted"])
def test_r13_sums_and_gradients(device: Any, T: Any, graph: GraphData) -> None:
    struct = _make(graph, device)
    x, g = device.array(X.astype(T)), device.array(G.astype(T))
    w = device.array(W[graph.edge_ids].astype(T))
    for op, out, dx in ((AggOp.Sum, SUM, SUM_DX), (AggOp.Mean, MEAN, MEAN_DX)):
        assert_close(simple(device, struct, x, op)[0], out)
        assert_close(simple_back(device, struct, g, op), dx)
    for output, dx, dw in (
        weighted(device, struct, x, w, AggOp.Sum, g),
        product(device, struct, w, x, g),
    ):
        assert_close(output, WEIGHTED)
        assert_close(dx, WEIGHTED_DX)
        assert_close(by_edge_id(graph, dw), WEIGHTED_DW)


def test_r13_mean_by_count(device: Any) -> None:
    struct = _make(G0, device)
    x, g, w = (device.array(a) for a in (X, G, W[G0.edge_ids]))
    output, dx, dw = product(device, struct, w, x, g, reduce="mean")
    assert_close(output, [[4.125, 1.75], [2, -4], [0, 0], [-0.25, 1 / 6]])
    assert_close(dx, [[1 / 12, 23 / 12], [7 / 6, 1 / 3], [0.25, 0], [1 / 3, -1 / 3]])
    assert_close(by_edge_id(G0, dw), [-0.75, 5 / 6, -2, 1 / 6, 1.5, 1])


def test_r14_direction(device: Any) -> None:
    src, dst = (device.array(np.array([i], np.int32)) for i in (0, 1))
    struct = edgegrad.from_coo(src, dst, 2)
    x, g = (device.array(np.array(a, float)) for a in ([[10], [20]], [[1], [2]]))
    assert simple(device, struct, x, AggOp.Sum)[0].tolist() == [[0], [10]]
    assert simple_back(device, struct, g, AggOp.Sum).tolist() == [[2], [0]]


def test_r16_views(device: Any, T: Any) -> None:
    struct, xp = _make(plain([0, 1, 3], [0, 0, 1], 2, bipartite=True), device), array_module(device)
    b = device.array(np.arange(10).reshape(2, 5).astype(T))
    for x, expected in (
        (b[:, :4], [[0, 1, 2, 3], [5, 7, 9, 11]]),
        (b[:, 1:], [[1, 2, 3, 4], [7, 9, 11, 13]]),
        (b[::-1], [[5, 6, 7, 8, 9], [5, 7, 9, 11, 13]]),
        (xp.broadcast_to(b[1], (2, 5)), [[5, 6, 7, 8, 9], [10, 12, 14, 16, 18]]),
    ):
        assert_close(simple(device, struct, x, AggOp.Sum)[0], expected)
        largest = np.maximum.reduceat(device.numpy(x)[[0, 0, 1]], [0, 1])
        assert_close(simple(device, struct, x, AggOp.Max)[0], largest)
    wide = device.poisoned((4, 7), T)
    agg_simple_n2n_fwd(wide[::2, 1:6], b, struct)
    got = device.numpy(wide).astype(float)
    assert_close(got[::2, 1:6], [[0, 1, 2, 3, 4], [5, 7, 9, 11, 13]])
    assert np.isnan(got[1::2]).all()
    assert np.isnan(got[:, [0, 6]]).all()


@pytest.mark.parametrize("op", [AggOp.Max, AggOp.Min], ids=str)
def test_r24_ties_go_to_the_first(device: Any, T: Any, IdxT: Any, op: AggOp) -> None:
    struct = _make(plain([0, 3], [0, 1, 2], 3, bipartite=True), device, IdxT)
    sign = 1 if op is AggOp.Max else -1
    x = device.array(sign * np.array([[5], [5], [1]]).astype(T))
    g = device.array(np.ones((1, 1), T))
    for _ in range(1000 if device.name == "host" else 3):
        output, extrema = simple(device, struct, x, op)
        assert (output.item(), device.numpy(extrema).item()) == (sign * 5, 0)
        dx = simple_back(device, struct, g, op, extrema)
        assert dx.ravel().tolist() == [1, 0, 0]


@pytest.mark.parametrize("op", [AggOp.Max, AggOp.Min], ids=str)
def test_nan_wins_and_infinity_is_a_value(device: Any, T: Any, op: AggOp) -> None:
    struct = _make(plain([0, 3, 4, 6], [0, 1, 2, 3, 0, 4], 6, bipartite=True), device)
    worst = -np.inf if op is AggOp.Max else np.inf
    # The last source has no edges: its NaN is nobody's.
    x = device.array(np.array([[1], [np.nan], [np.nan], [worst], [2], [np.nan]], T))
    output, extrema = simple(device, struct, x, op)
    expected = [[np.nan], [worst], [2 if op is AggOp.Max else 1]]
    np.testing.assert_array_equal(output.astype(float), expected)
    assert device.numpy(extrema).ravel().tolist() == [1, 3, 5 if op is AggOp.Max else 4]


def test_what_nobody_reads_does_not_leak(device: Any) -> None:
    struct = _make(G0, device)  # destination 2 has no in-edges
    g = device.array(np.where(np.arange(4)[:, None] == 2, np.nan, G))
    x, w = device.array(X), device.array(W[G0.edge_ids])
    for op in BASIC:
        _, extrema = simple(device, struct, x, op)
        assert np.isfinite(simple_back(device, struct, g, op, extrema)).all()
        _, dx, dw = weighted(device, struct, x, w, op, g)
        assert np.isfinite(dx).all()
        assert np.isfinite(dw).all()


# ---- R25


def _skewed() -> GraphData:
    e, n = np.arange(100_000), 1000
    src = (7919 * e + 13) % n
    dst = (n * ((104729 * e % 100003) / 100003) ** 4).astype(int)
    order = np.argsort(dst, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(np.bincount(dst, minlength=n))])
    return GraphData(offsets, src[order], np.zeros(len(e), np.int32), n, 1, edge_ids=order)


def _skewed_arrays(graph: GraphData, dim: int, T: Any) -> list[np.ndarray]:
    i, f = np.arange(1000)[:, None], np.arange(dim)
    x, g = np.sin(0.37 * i + 1.3 * f), np.sin(0.5 + 0.01 * i * f)
    arrays = (np.cos(0.11 * graph.edge_ids), x, g)
    return [a.astype(np.float32).astype(T) for a in arrays]


def test_r25_values() -> None:
    graph = _skewed()
    struct = edgegrad.make_csc(graph.offsets.astype(np.int32), graph.indices.astype(np.int32))
    for T in (np.float64, np.float32):
        w, x, g = _skewed_arrays(graph, 64, T)
        out, dx, dw = product(Host(), struct, w, x, g)
        dw = by_edge_id(graph, dw)
        if T is np.float64:
            np.testing.assert_allclose(out[0, :2], [5.00956429, 13.97389831], rtol=1e-8)
            np.testing.assert_allclose(dx[0, :2], [0.26746581, -1.77607434], rtol=1e-7)
            np.testing.assert_allclose(dw[:3], [-0.53372357, -0.31948225, 0.39874541], rtol=1e-7)
            norms = [np.linalg.norm(a) for a in (out, dx, dw)]
            np.testing.assert_allclose(norms, [515.44557, 871.06996, 970.10898], rtol=1e-7)
            exact = out
    assert np.abs(out - exact).max() < 3e-5


def test_r25_bitwise_repeatable_on_any_number_of_threads() -> None:
    graph = _skewed()
    ids = graph.offsets.astype(np.int32), graph.indices.astype(np.int32)
    w, x, g = _skewed_arrays(graph, 64, np.float32)
    first = product(Host(), edgegrad.make_csc(*ids), w, x, g)
    try:
        for threads in (1, 2, 3):
            edgegrad.set_num_threads(threads)
            struct = edgegrad.make_csc(*ids)
            for _ in range(7):
                for a, b in zip(product(Host(), struct, w, x, g), first, strict=True):
                    np.testing.assert_array_equal(a, b)
    finally:
        edgegrad.set_num_threads(0)


def test_r25_gradient_of_a_long_chain() -> None:
    n = 50_000
    rng = np.random.default_rng(0)
    rows = np.concatenate([np.arange(n), np.arange(n - 1), np.arange(1, n)])
    columns = np.concatenate([np.arange(n), np.arange(1, n), np.arange(n - 1)])
    struct = edgegrad.from_coo(columns.astype(np.int32), rows.astype(np.int32), n)
    values = np.where(rows == columns, 2.0, -1.0)[np.asarray(struct.map_csc_to_coo)]
    x, g = rng.standard_normal((2, n, 1))
    _, dx, dw = product(Host(), struct, values, x, g)
    v, y = rng.standard_normal(n), rng.standard_normal(len(values))

    def loss(values: np.ndarray, x: np.ndarray) -> float:
        output = np.empty((n, 1))
        edgegrad.operators.spmm_fwd(output, values, x, struct)
        return float((output * g).sum())

    h = 1e-3
    along_x = (loss(values, x + h * v[:, None]) - loss(values, x - h * v[:, None])) / (2 * h)
    along_w = (loss(values + h * y, x) - loss(values - h * y, x)) / (2 * h)
    assert abs(along_x - (dx[:, 0] * v).sum()) < 1e-6
    assert abs(along_w - (dw * y).sum()) < 1e-6


def test_r30d_more_rows_than_a_grid_axis(device: Any) -> None:
    n = 70_001
    struct = _make(plain(np.arange(n + 1), np.zeros(n), 1, bipartite=True), device)
    x = device.array(np.array([[3.0]]))
    assert (simple(device, struct, x, AggOp.Sum)[0] == 3).all()
