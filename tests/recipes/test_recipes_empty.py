"""R4 and R7: no edges, no nodes, no features, no edges of a type."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import edgegrad
from graphs import G0
from recipes.calls import PLAIN, G, W, X, assert_close, backward, forward, plain


@pytest.mark.parametrize("mean", [False, True], ids=["sum", "mean"])
def test_r04_no_edges_give_zeros_not_nan(device: Any, T: Any, mean: bool) -> None:
    struct = plain([0, 0, 0], [], 2).make(device)
    x = device.array(np.arange(1, 9).reshape(2, 4).astype(T))
    assert_close(forward(device, struct, x, norm_by_out_degree=mean), np.zeros((2, 4)))
    d = backward(device, struct, x, x, norm_by_out_degree=mean)
    assert_close(d.x, np.zeros((2, 4)))
    assert d.edges.shape == (0,)


def test_r04_output_is_written_whole_into_used_memory(device: Any) -> None:
    struct = plain([0, 0], [], 1).make(device)
    x = device.array(np.ones((1, 64)))
    for _ in range(100):
        freed = device.poisoned((1, 64), np.float64)
        del freed
        assert not forward(device, struct, x).any()
        assert not backward(device, struct, x, x).x.any()


def test_r07a_no_features(device: Any, T: Any) -> None:
    struct = PLAIN.make(device)
    x = device.array(np.zeros((4, 0), T))
    w = device.array(W[PLAIN.edge_ids].astype(T))
    assert forward(device, struct, x, edge_weight=w).shape == (4, 0)
    d = backward(device, struct, x, x, edge_weight=w)
    assert d.x.shape == (4, 0)
    assert_close(d.edges, np.zeros(6))
    one = device.array(np.ones((1, 3), T))
    assert forward(device, struct, x, one).shape == (4, 0)
    assert_close(backward(device, struct, x, x, one).weights, np.zeros((1, 3)))


def test_r07b_no_destinations(device: Any) -> None:
    struct = plain([0], [], 4).make(device)
    x, g = device.array(X), device.array(np.zeros((0, 2)))
    assert forward(device, struct, x).shape == (0, 2)
    assert_close(backward(device, struct, g, x).x, np.zeros((4, 2)))


@pytest.mark.parametrize("dim", [0, 1, 5])
def test_r07c_no_sources(device: Any, dim: int) -> None:
    struct = plain([0, 0, 0], [], 0, bipartite=True).make(device)
    x, g = device.array(np.zeros((0, dim))), device.array(np.ones((2, dim)))
    assert_close(forward(device, struct, x), np.zeros((2, dim)))
    assert backward(device, struct, g, x).x.shape == (0, dim)


def test_r07e_relation_without_edges_changes_nothing(device: Any) -> None:
    two = replace(G0, edge_types=np.array([0, 0, 0, 1, 1, 1], np.int32), n_types=2)
    three = replace(two, edge_types=2 * two.edge_types, n_types=3)
    weights = np.array([[1.0, 0.5], [-1.0, 2.0]])
    # The weights of the empty relation are nobody's: not even a NaN may come through.
    padded = np.array([weights[0], [np.nan, np.nan], weights[1]])
    x, g = device.array(X), device.array(np.tile(G, 2))
    given = [(d.make(device), device.array(w)) for d, w in ((two, weights), (three, padded))]
    out2, out3 = (forward(device, struct, x, w) for struct, w in given)
    np.testing.assert_array_equal(out3, out2)
    d2, d3 = (backward(device, struct, g, x, w) for struct, w in given)
    np.testing.assert_array_equal(d3.x, d2.x)
    np.testing.assert_array_equal(d3.edges, d2.edges)
    np.testing.assert_array_equal(d3.weights, np.insert(d2.weights, 1, 0, axis=0))
    blocks2, blocks3 = (forward(device, struct, x) for struct, _ in given)
    np.testing.assert_array_equal(blocks3, np.insert(blocks2, [2, 2], 0, axis=1))


def test_r07f_node_counts_are_given_not_inferred(device: Any) -> None:
    src, dst = (device.array(np.array([n])) for n in (0, 7))
    types = device.array(np.zeros(1, np.int32))
    struct = edgegrad.from_coo(src, dst, 10, edge_types=types, n_edge_types=1)
    x = device.array(np.arange(10.0)[:, None] + 5)
    out = forward(device, struct, x)
    assert out.shape == (10, 1)
    assert_close(out[:, 0], [0, 0, 0, 0, 0, 0, 0, 5, 0, 0])
    assert_close(backward(device, struct, x, x).x[:, 0], [12, *[0] * 9])
