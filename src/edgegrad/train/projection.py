"""Products of features with a matrix that is learnt, for sparse and for dense features."""

from __future__ import annotations

from typing import Any

import numpy as np

from edgegrad import make_bipartite_csc_hg
from edgegrad.datasets import Features
from edgegrad.operators import agg_hg_basis_n2n_post_bwd, agg_hg_basis_n2n_post_fwd
from edgegrad.train.device import Device
from edgegrad.train.dropout import Dropout


class SparseProjection:
    """X W for given features X that are mostly 0, and need no gradient.

    X is a bipartite graph from columns to nodes, and its values are weights of the edges: each node
    adds up the rows of W that its features name. To drop a feature is to drop an edge.
    """

    def __init__(self, features: Features, dim_out: int, device: Device) -> None:
        n_nodes, n_columns, columns = (
            len(features.offsets) - 1,
            features.n_columns,
            features.columns,
        )
        one_type = np.zeros_like(columns)
        graph = make_bipartite_csc_hg(
            features.offsets, columns, n_columns, 1, 1, None, None, one_type
        )
        self.graph, self.values = device.graph(graph), device.array(features.values)
        self.output = device.empty(n_nodes, dim_out)
        self.grad_weight = device.empty(n_columns, dim_out)

    def forward(self, _: None, weight: Any, dropout: Dropout | None) -> Any:
        """Return a row for each node; the buffer is written again by the next call."""
        values = self.values
        self.weight, self.kept = (
            weight,
            dropout.factors(*values.shape) * values if dropout else values,
        )
        agg_hg_basis_n2n_post_fwd(self.output, weight, None, self.graph, edge_weight=self.kept)
        return self.output

    def backward(self, grad_output: Any) -> tuple[None, Any]:
        """Return no gradient for the features, and that for the matrix."""
        agg_hg_basis_n2n_post_bwd(
            self.grad_weight,
            None,
            grad_output,
            self.weight,
            None,
            self.graph,
            edge_weight=self.kept,
        )
        return None, self.grad_weight


class DenseProjection:
    """X W for features X from the layer before."""

    def forward(self, input: Any, weight: Any, dropout: Dropout | None) -> Any:
        """Return a row for each row of the input."""
        self.factors = dropout.factors(*input.shape) if dropout else 1
        self.weight, self.kept = weight, input * self.factors
        return self.kept @ weight

    def backward(self, grad_output: Any) -> tuple[Any, Any]:
        """Return the gradients for the features and for the matrix."""
        return grad_output @ self.weight.T * self.factors, self.kept.T @ grad_output
