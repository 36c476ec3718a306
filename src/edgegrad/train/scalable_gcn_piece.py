"""A batch on its device: what it sums over, what it reads, and what it is to learn."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgegrad import Batch, make_bipartite_csc_hg
from edgegrad.datasets.planetoid import Features, Planetoid
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


class Piece:
    """A batch of a node classification."""

    def __init__(self, batch: Batch, weight: NDArray, data: Planetoid, device: Device) -> None:
        self.n_own = len(batch.own)
        self.neighbours_sum = Sum(batch.graph, device)
        self.weight = device.array(weight[batch.positions])
        self.own, self.neighbours = (device.xp.asarray(i) for i in (batch.own, batch.neighbours))
        sources = np.concatenate([batch.own, batch.neighbours])
        graph, values = _rows_of(data.features, sources)
        self.features_sum, self.features = Sum(graph, device), device.array(values)
        labels = data.labels[batch.own]
        self.targets = device.array(labels[:, None] == np.arange(data.n_classes))
        # A node that is in the batch twice is learnt from once.
        first = np.zeros(self.n_own, bool)
        first[np.unique(batch.own, return_index=True)[1]] = True
        self.first = device.array(first[:, None])
        counts = first & np.isin(batch.own, data.train)
        self.counts = device.array(counts[:, None] / len(data.train))

    def spread(self, rows: Any) -> Any:
        """Return A rows, for the destinations."""
        return self.neighbours_sum.forward(rows, self.weight)

    def gather(self, grad_output: Any) -> Any:
        """Return the gradient for the rows that were spread."""
        return self.neighbours_sum.backward(grad_output, self.weight)


def _rows_of(features: Features, rows: NDArray[np.int64]) -> tuple[Graph, NDArray]:
    """Make some rows of the features a graph from columns to rows, with its weights."""
    starts = features.offsets[rows].astype(np.int64)
    lengths = features.offsets[rows + 1] - starts
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    positions = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths)
    graph = make_bipartite_csc_hg(
        offsets.astype(np.int32),
        features.columns[positions],
        features.n_columns,
        1,
        1,
        None,
        None,
        np.zeros(len(positions), np.int32),
        validate=False,
    )
    return graph, features.values[positions]
