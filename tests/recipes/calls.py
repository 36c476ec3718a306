"""The graph and numbers that recipes share, and R-GCN calls into poisoned arrays.

A plain sum is the operator with one edge type and no weights, a mean adds `norm_by_out_degree`, a
weighted sum `edge_weight`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from edgegrad.backends import cuda
from edgegrad.operators import agg_hg_basis_n2n_post_bwd, agg_hg_basis_n2n_post_fwd
from graphs import G0, GraphData

X = np.array([[1, -2], [3, 0.5], [-1.5, 4], [2, 1.5]])
# Edge arrays of the recipes are in the caller's order; `G0.edge_ids` puts them into CSC order.
W = np.array([0.5, -1, 2, 1, 3, 0.25])
# The third row belongs to a destination without in-edges: nothing of it may appear anywhere.
G = np.array([[1, 0], [0, 1], [5, 5], [1, -1]], float)

SUM = [[1.5, 4.5], [1, -2], [0, 0], [6, 0]]
SUM_DX = [[1, 0], [2, -1], [1, 0], [1, -1]]
MEAN = [[0.75, 2.25], [1, -2], [0, 0], [2, 0]]
MEAN_DX = [[1 / 3, 2 / 3], [5 / 6, -1 / 3], [0.5, 0], [1 / 3, -1 / 3]]
WEIGHTED = [[8.25, 3.5], [2, -4], [0, 0], [-0.75, 0.5]]
WEIGHTED_DX = [[0.25, 1.75], [2, 1], [0.5, 0], [1, -1]]
WEIGHTED_DW = [-1.5, 2.5, -2, 0.5, 3, 3]


def one_type(graph: GraphData) -> GraphData:
    """The graph with all edges of one type."""
    return replace(graph, edge_types=np.zeros(graph.n_edges, np.int32), n_types=1)


PLAIN = one_type(G0)


def plain(offsets: Any, indices: Any, n_src: int, *, bipartite: bool = False) -> GraphData:
    """A graph of one edge type from its arrays."""
    ids = np.array(indices, np.int64)
    return one_type(GraphData(np.array(offsets), ids, ids, n_src, 1, bipartite))


def array_module(device: Any) -> Any:
    """NumPy, or what stands for CuPy on the device."""
    return np if device.name == "host" else cuda.cupy()


def forward(
    device: Any,
    struct: Any,
    x: Any,
    weights: Any = None,
    edge_weight: Any = None,
    dtype: Any = None,
    **options: Any,
) -> np.ndarray:
    """The output for arrays on the device; x may be anybody's if its NumPy dtype is given."""
    blocks = struct.n_edge_types if weights is None else weights.shape[1]
    width = x.shape[-1] * (blocks + options.get("concat_own", False))
    shape = (*x.shape[:-2], struct.n_dst_nodes, width)
    output = device.poisoned(shape, dtype or x.dtype)
    agg_hg_basis_n2n_post_fwd(output, x, weights, struct, edge_weight=edge_weight, **options)
    return device.numpy(output)


@dataclass(frozen=True)
class Gradients:
    """What the backward wrote; `edges` is in the caller's order."""

    x: np.ndarray
    weights: np.ndarray | None
    edges: np.ndarray


def backward(
    device: Any,
    struct: Any,
    g: Any,
    x: Any,
    weights: Any = None,
    edge_weight: Any = None,
    dtype: Any = None,
    **options: Any,
) -> Gradients:
    """All gradients for arrays on the device."""
    dtype = dtype or x.dtype
    dx = device.poisoned(tuple(x.shape), dtype)
    dw = None if weights is None else device.poisoned(tuple(weights.shape), weights.dtype)
    de = device.poisoned((struct.n_indices,), dtype if edge_weight is None else edge_weight.dtype)
    agg_hg_basis_n2n_post_bwd(
        dx, dw, g, x, weights, struct, edge_weight=edge_weight, grad_edge_weight=de, **options
    )
    by_position = device.numpy(de)
    edges = np.empty_like(by_position)
    edge_map = struct.map_csc_to_coo
    edges[slice(None) if edge_map is None else edge_ids(device, struct)] = by_position
    return Gradients(device.numpy(dx), None if dw is None else device.numpy(dw), edges)


def edge_ids(device: Any, struct: Any) -> np.ndarray:
    """Edge id of every CSC position."""
    return device.numpy(array_module(device).asarray(struct.map_csc_to_coo))


def assert_close(got: np.ndarray, expected: Any) -> None:
    """Equal within what the dtype allows: one unit in the last place for half types."""
    expected = np.asarray(expected, np.float64)
    rtol, atol = {8: (1e-12, 1e-12), 4: (1e-5, 1e-6)}.get(got.itemsize, (0.0, 0.0))
    if got.itemsize == 2:
        rtol = 2.0**-10 if got.dtype == np.float16 else 2.0**-7
        expected = expected.astype(got.dtype).astype(np.float64)
    np.testing.assert_allclose(got.astype(np.float64), expected, rtol, atol)
