"""R10: the order of edges, in a column and in the caller's list, is free."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import edgegrad
from graphs import G0, GraphData, permuted_g0
from recipes.calls import (
    MEAN,
    MEAN_DX,
    PLAIN,
    SUM,
    SUM_DX,
    WEIGHTED,
    WEIGHTED_DW,
    WEIGHTED_DX,
    G,
    W,
    X,
    assert_close,
    backward,
    edge_ids,
    forward,
    one_type,
)

BOTH = pytest.mark.parametrize(
    "graph", [PLAIN, one_type(permuted_g0())], ids=["g0", "permuted inside columns"]
)


@BOTH
def test_r10_sum_and_mean(device: Any, T: Any, graph: GraphData) -> None:
    struct = graph.make(device)
    x, g = device.array(X.astype(T)), device.array(G.astype(T))
    for mean, out, dx in ((False, SUM, SUM_DX), (True, MEAN, MEAN_DX)):
        assert_close(forward(device, struct, x, norm_by_out_degree=mean), out)
        assert_close(backward(device, struct, g, x, norm_by_out_degree=mean).x, dx)


@BOTH
def test_r10_weighted_sum_and_both_gradients(device: Any, T: Any, graph: GraphData) -> None:
    struct = graph.make(device)
    x, g = device.array(X.astype(T)), device.array(G.astype(T))
    w = device.array(W[graph.edge_ids].astype(T))
    assert_close(forward(device, struct, x, edge_weight=w), WEIGHTED)
    d = backward(device, struct, g, x, edge_weight=w)
    assert_close(d.x, WEIGHTED_DX)
    assert_close(d.edges, WEIGHTED_DW)


@BOTH
def test_r10_weighted_mean_and_own_row(device: Any, graph: GraphData) -> None:
    struct = graph.make(device)
    x, g, w = (device.array(a) for a in (X, G, W[graph.edge_ids]))
    mean = {"edge_weight": w, "norm_by_out_degree": True}
    expected = [[4.125, 1.75], [2, -4], [0, 0], [-0.25, 1 / 6]]
    assert_close(forward(device, struct, x, **mean), expected)
    d = backward(device, struct, g, x, **mean)
    dx = [[1 / 12, 23 / 12], [7 / 6, 1 / 3], [0.25, 0], [1 / 3, -1 / 3]]
    assert_close(d.x, dx)
    assert_close(d.edges, [-0.75, 5 / 6, -2, 1 / 6, 1.5, 1])
    own = forward(device, struct, x, norm_by_out_degree=True, concat_own=True)
    assert_close(own, np.hstack([MEAN, X]))


def test_r10_basis_aggregation_of_permuted_columns(device: Any) -> None:
    x, weights = device.array(X), device.array(np.array([[1, 0], [0.5, 0.5], [-1, 2]]))
    expected = [[1.5, 4.5, 0, 0], [1, -2, 0, 0], [0, 0, 0, 0], [0, -2.25, 6, 2.25]]
    for graph in (G0, permuted_g0()):
        assert_close(forward(device, graph.make(device), x, weights), expected)


def test_r10_unsorted_edge_list_is_sorted(device: Any) -> None:
    src, dst = (device.array(np.array(a, np.int32)) for a in ([2, 2, 1, 3], [0, 1, 2, 0]))
    types = device.array(np.zeros(4, np.int32))
    struct = edgegrad.from_coo(src, dst, 4, 3, edge_types=types, n_edge_types=1)
    assert_close(forward(device, struct, device.array(np.ones((4, 1)))), [[2], [1], [1]])
    assert edge_ids(device, struct).tolist() == [0, 3, 1, 2]


def test_r10_edge_list_of_g0_gives_its_numbers(device: Any) -> None:
    src, dst = (np.array(a, np.int32) for a in ([2, 1, 0, 3, 1, 0], [0, 3, 1, 3, 0, 3]))
    types = device.array(np.zeros(6, np.int32))
    ends = device.array(src), device.array(dst)
    struct = edgegrad.from_coo(*ends, 4, edge_types=types, n_edge_types=1)
    x, g, w = (device.array(a) for a in (X, G, W[edge_ids(device, struct)]))
    assert_close(forward(device, struct, x, edge_weight=w), WEIGHTED)
    d = backward(device, struct, g, x, edge_weight=w)
    assert_close(d.x, WEIGHTED_DX)
    assert_close(d.edges, WEIGHTED_DW)
