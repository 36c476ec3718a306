"""Products with a sparse matrix, as weighted sums along the edges of a graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from edgegrad import make_bipartite_csc_hg
from edgegrad.datasets import Features
from edgegrad.graph import Graph
from edgegrad.operators import agg_hg_basis_n2n_post_bwd, agg_hg_basis_n2n_post_fwd
from edgegrad.train.device import Device


class Sum:
    """Weighted sums along the edges of a graph: a sparse matrix times a dense one."""

    def __init__(self, graph: Graph, device: Device) -> None:
        self.graph, self.device = device.graph(graph), device

    def forward(self, rows: Any, weight: Any) -> Any:
        """Return a row for each destination; `weight` is in CSC order."""
        output = self.device.empty(self.graph.n_dst_nodes, rows.shape[1])
        agg_hg_basis_n2n_post_fwd(output, rows, None, self.graph, edge_weight=weight)
        return output

    def backward(self, grad_output: Any, weight: Any) -> Any:
        """Return the gradient for the rows."""
        shape = self.graph.n_src_nodes, grad_output.shape[1]
        # Linear: the rows themselves are not read.
        grad, rows = self.device.empty(*shape), self.device.empty(*shape)
        agg_hg_basis_n2n_post_bwd(
            grad, None, grad_output, rows, None, self.graph, edge_weight=weight
        )
        return grad


def feature_sum(features: Features, device: Device) -> tuple[Sum, Any]:
    """Make features a graph from columns to nodes, with its edge weights.

    The product with a matrix is then a sum, for each node, over the rows that its features name.
    """
    one_type = np.zeros_like(features.columns)
    graph = make_bipartite_csc_hg(
        features.offsets, features.columns, features.n_columns, 1, 1, None, None, one_type,
        validate=False,
    )  # fmt: skip
    return Sum(graph, device), device.array(features.values)
