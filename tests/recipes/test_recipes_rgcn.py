"""R21 and R22: bases without shape heuristics, R-GCN values and normalisers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import edgegrad
from graphs import G0
from recipes.calls import PLAIN, G, X, assert_close, backward, edge_ids, forward

SWAP = np.array([[0.0, 1], [1, 0]])
COEF = np.array([[1, 0], [0.5, 0.5], [-1, 2]])
V = np.array([np.eye(2), SWAP])
TYPES = np.array([0, 1, 0, 2, 0, 1])  # by edge id
AGGREGATE = [[1.5, 4.5, 0, 0], [1, -2, 0, 0], [0, 0, 0, 0], [0, -2.25, 6, 2.25]]


def _layer(aggregate: np.ndarray, bases: np.ndarray) -> np.ndarray:
    """What follows the operator in an R-GCN layer."""
    return aggregate.astype(np.float64) @ bases.reshape(-1, bases.shape[-1])


# ---- R21


def test_r21_one_relation_one_basis(device: Any, T: Any) -> None:
    weights = device.array(np.array([[2]], T))
    out = forward(device, PLAIN.make(device), device.array(X.astype(T)), weights)
    bases = np.array([[[1.0, 1], [0, 1]]])
    assert_close(_layer(out, bases), [[3, 12], [2, -2], [0, 0], [12, 12]])


@pytest.mark.parametrize("n_bases", [3, 5], ids=["as many bases as relations", "more"])
def test_r21_identity_coefficients(device: Any, T: Any, n_bases: int) -> None:
    weights = device.array(np.eye(3, n_bases).astype(T))
    out = forward(device, G0.make(device), device.array(X.astype(T)), weights)
    assert out.shape == (4, 2 * n_bases)
    assert not out[:, 6:].any()
    bases = np.zeros((n_bases, 2, 2))
    bases[:3] = np.eye(2), SWAP, np.diag([2.0, -1])
    bases[3:] = 7  # multiplied by coefficients of zero
    assert_close(_layer(out, bases), [[1.5, 4.5], [1, -2], [0, 0], [2.5, 2.5]])


def test_r21_no_bases_are_refused(device: Any) -> None:
    struct, x = G0.make(device), device.array(X)
    none = device.array(np.zeros((3, 0)))
    for call in (forward, backward):
        g = () if call is forward else (device.array(np.zeros((4, 0))),)
        with pytest.raises(ValueError, match="`weights_combination` has n_bases = 0, expected"):
            call(device, struct, *g, x, none)


@pytest.mark.parametrize("bad", [3, -1])
def test_r21_edge_types_are_checked_at_construction(device: Any, bad: int) -> None:
    types = TYPES.copy()
    types[3] = bad
    src, dst = np.array([2, 1, 0, 3, 1, 0]), np.array([0, 3, 1, 3, 0, 3])
    ends = device.array(src), device.array(dst)
    with pytest.raises(ValueError, match=rf"`edge_types\[\d\]` has the value {bad}, .*\[0, 3\)"):
        edgegrad.from_coo(*ends, 4, edge_types=device.array(types.astype(np.int32)), n_edge_types=3)
    by_position = device.array(types[G0.edge_ids].astype(np.int32))
    csc = device.array(G0.offsets), device.array(G0.indices)
    with pytest.raises(ValueError, match=rf"`edge_types\[5\]` has the value {bad}, .*\[0, 3\)"):
        edgegrad.make_csc_hg(*csc, 0, 3, None, by_position)


# ---- R22


def test_r22_values_and_every_gradient(device: Any, T: Any) -> None:
    struct, x, weights = G0.make(device), device.array(X.astype(T)), device.array(COEF.astype(T))
    out = forward(device, struct, x, weights)
    assert_close(out, AGGREGATE)
    assert_close(_layer(out, V), [[1.5, 4.5], [1, -2], [0, 0], [2.25, 3.75]])
    g = device.array((G @ V.reshape(4, 2).T).astype(T))
    d = backward(device, struct, g, x, weights)
    assert_close(d.x, [[0, 1], [1, 0], [1, 0], [-3, 3]])
    assert_close(d.weights, [[-0.5, 5.5], [5.5, -5.5], [0.5, -0.5]])
    bases = (out.astype(np.float64).T @ G).reshape(2, 2, 2)
    assert_close(bases, [[[1.5, 1], [2.25, 0.25]], [[6, -6], [2.25, -2.25]]])


def test_r22_from_the_callers_edges(device: Any) -> None:
    src, dst = (np.array(a, np.int32) for a in ([2, 1, 0, 3, 1, 0], [0, 3, 1, 3, 0, 3]))
    types = device.array(TYPES.astype(np.int32))
    ends = device.array(src), device.array(dst)
    struct = edgegrad.from_coo(*ends, 4, edge_types=types, n_edge_types=3)
    assert_close(forward(device, struct, device.array(X), device.array(COEF)), AGGREGATE)


PER_RELATION = [[0.75, 2.25], [1, -2], [0, 0], [1.625, 3.125]]
PER_NODE = [[0.75, 2.25], [1, -2], [0, 0], [0.75, 1.25]]


def test_r22_normaliser_per_destination_and_relation(device: Any) -> None:
    struct, x, weights = G0.make(device), device.array(X), device.array(COEF)
    factor = np.array([0.5, 0.5, 1, 1, 0.5, 0.5])[edge_ids(device, struct)]
    given = forward(device, struct, x, weights, device.array(factor))
    assert_close(_layer(given, V), PER_RELATION)
    counted = forward(device, struct, x, weights, norm_by_out_degree=True)
    assert_close(_layer(counted, V), PER_RELATION)


def test_r22_normaliser_per_destination(device: Any) -> None:
    struct, x, weights = G0.make(device), device.array(X), device.array(COEF)
    degree = np.array([2, 3, 1, 3, 2, 3])[edge_ids(device, struct)]
    out = forward(device, struct, x, weights, device.array(1 / degree))
    assert_close(_layer(out, V), PER_NODE)


@pytest.mark.parametrize("n_out", [1, 16])
@pytest.mark.parametrize("n_bases", [1, 2, 5])
@pytest.mark.parametrize("dim", [1, 16])
def test_r22_every_shape_agrees_with_one_matrix_per_relation(
    device: Any, dim: int, n_bases: int, n_out: int
) -> None:
    rng = np.random.default_rng(22)
    graph = replace(G0, n_types=4)  # the last relation has no edges
    x = rng.standard_normal((4, dim))
    coef, bases = rng.standard_normal((4, n_bases)), rng.standard_normal((n_bases, dim, n_out))
    expected = np.zeros((4, n_out))
    for i, j, r in zip(graph.destinations, graph.indices, graph.edge_types, strict=True):
        expected[i] += x[j] @ sum(coef[r, b] * bases[b] for b in range(n_bases))
    out = forward(device, graph.make(device), device.array(x), device.array(coef))
    assert_close(_layer(out, bases), expected)
