"""R3, R13, R23 and R30 (d): softmax of logits and values of edges, in the caller's order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from edgegrad.operators import edge_softmax_bwd, edge_softmax_fwd, sddmm_bwd, sddmm_fwd
from graphs import G0
from recipes.calls import X, assert_close, plain

DTYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])

LOGITS = np.array([1, 2, 0, 3, -1, 0.5])
BY_SCOPE = {
    "dst": [0.88079708, 0.25371618, 1, 0.68967209, 0.11920292, 0.05661173],
    "dst_and_type": [0.88079708, 0.81757448, 1, 1, 0.11920292, 0.18242552],
}


def _by_edge_id(device: Any, by_position: Any) -> np.ndarray:
    """An edge array of G0 in the caller's order."""
    values = device.numpy(by_position)
    result = np.empty_like(values)
    result[G0.edge_ids] = values
    return result


@DTYPES
@pytest.mark.parametrize(
    ("logits", "expected"),
    [
        ([1000, 1001, -1000, -1001], [0.26894142, 0.73105858, 0.73105858, 0.26894142]),
        ([88.8, 89.8], [0.26894142, 0.73105858]),
        ([1e4, -1e4], [1, 0]),
    ],
    ids=["beyond exp", "at the limit of float32", "one and none"],
)
def test_r3_extreme_logits(device: Any, dtype: Any, logits: list[float], expected: Any) -> None:
    n = len(logits)
    graph = plain(np.arange(0, n + 1, 2), np.arange(n), n, bipartite=True)
    output = device.poisoned((n,), dtype)
    edge_softmax_fwd(output, device.array(np.array(logits, dtype)), graph.make(device))
    atol = 1e-4 if dtype == np.float32 else 1e-8  # 88.8 is rounded, and the figures are
    np.testing.assert_allclose(device.numpy(output), expected, rtol=0, atol=atol)


@DTYPES
def test_r13_sddmm_with_an_edge_map(device: Any, dtype: Any) -> None:
    x = device.array(X.astype(dtype))
    output = device.poisoned((6,), dtype)
    sddmm_fwd(output, x, x, G0.make(device))
    assert_close(_by_edge_id(device, output), [-9.5, 6.75, 2, 6.25, 2, -1])


@pytest.mark.parametrize("scope", BY_SCOPE)
def test_r23_scope_in_heterographs(device: Any, scope: str) -> None:
    struct = G0.make(device)
    output = device.poisoned((6,), np.float64)
    edge_softmax_fwd(output, device.array(LOGITS[G0.edge_ids]), struct, scope=scope)
    np.testing.assert_allclose(_by_edge_id(device, output), BY_SCOPE[scope], rtol=0, atol=1e-8)
    if scope != "dst":
        return
    upstream = device.array(np.arange(1.0, 7)[G0.edge_ids])
    grad = device.poisoned((6,), np.float64)
    edge_softmax_bwd(grad, upstream, output, struct, scope=scope)
    expected = [-0.41997434, -0.40741519, 0, 0.27187487, 0.41997434, 0.13554031]
    np.testing.assert_allclose(_by_edge_id(device, grad), expected, rtol=0, atol=1e-8)


def test_r30_many_destinations(device: Any) -> None:
    """70,001 destinations of one channel, one edge each from source 0."""
    n = 70_001
    struct = plain(np.arange(n + 1), np.zeros(n), 1, bipartite=True).make(device)
    x = device.array(np.full((1, 1), 3, np.float32))
    output, coefficients = device.poisoned((n, 1), np.float32), device.poisoned((n,), np.float32)
    sddmm_fwd(output, None, x, struct, op="copy_rhs")
    edge_softmax_fwd(coefficients, output[:, 0], struct)
    assert (device.numpy(output) == 3).all()
    assert (device.numpy(coefficients) == 1).all()


@pytest.mark.parametrize("dim", [1, 2])
def test_r30_many_heads(device: Any, dim: int) -> None:
    """70,001 heads are more than a grid is high."""
    heads = 70_001
    struct = plain([0, 1], [0], 1).make(device)
    lhs = device.array(np.ones((1, heads, dim), np.float32))
    rhs = device.array(np.full((1, heads, dim), 3, np.float32))
    output = device.poisoned((1, heads), np.float32)
    sddmm_fwd(output, lhs, rhs, struct)
    assert (device.numpy(output) == 3 * dim).all()
    grads = [device.poisoned((1, heads, dim), np.float32) for _ in range(2)]
    sddmm_bwd(*grads, output, lhs, rhs, struct)
    assert (device.numpy(grads[0]) == 9 * dim).all()
    assert (device.numpy(grads[1]) == 3 * dim).all()
    coefficients = device.poisoned((1, heads), np.float32)
    edge_softmax_fwd(coefficients, output, struct)
    assert (device.numpy(coefficients) == 1).all()
