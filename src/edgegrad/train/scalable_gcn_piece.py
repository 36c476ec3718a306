"""A batch on its device: what it sums over, what it reads, and what it is to learn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgegrad import Batch, from_coo
from edgegrad.datasets import NodeGraph
from edgegrad.graph import Graph
from edgegrad.train.device import Device
from edgegrad.train.sums import Sum, feature_sum


@dataclass(frozen=True)
class Links:
    """A graph whose edges have weights, to be cut into batches."""

    graph: Graph
    weight: NDArray  # (n_indices), in CSC order
    weight_back: NDArray  # (n_indices): the weight of each edge's reverse edge
    own_apart: bool  # a node's own row has a weight matrix of its own, beside the neighbours'

    @classmethod
    def of(cls, model: str, data: NodeGraph) -> Links:
        """Weigh the edges as the model does; those of GCN are joined by self loops."""
        n = data.n_nodes
        every, (src, dst) = np.arange(n, dtype=np.int32), data.edge_index
        if model == "gcn":
            src, dst = np.append(src, every), np.append(dst, every)
        types = np.zeros(len(src), np.int32)
        graph = from_coo(src.copy(), dst.copy(), n, edge_types=types, n_edge_types=1)
        n_edges = np.diff(np.asarray(graph.offsets))
        degree = np.maximum(n_edges, 1.0)
        scale = degree ** (-0.5 if model == "gcn" else -1.0)
        of_dst, of_src = np.repeat(scale, n_edges), scale[np.asarray(graph.indices)]
        if model == "gcn":
            weight = of_dst * of_src
            return cls(graph, weight, weight, own_apart=False)
        return cls(graph, of_dst, of_src, own_apart=True)


class Piece:
    """A batch of a node classification."""

    def __init__(
        self,
        batch: Batch,
        links: Links,
        data: NodeGraph,
        train: NDArray[np.bool_],
        device: Device,
    ) -> None:
        self.n_own = len(batch.own)
        self.neighbours_sum, self.own_apart = Sum(batch.graph, device), links.own_apart
        self.weight = self.weight_back = device.array(links.weight[batch.positions])
        if links.weight_back is not links.weight:
            self.weight_back = device.array(links.weight_back[batch.positions])
        self.own, self.neighbours = (device.xp.asarray(i) for i in (batch.own, batch.neighbours))
        sources = np.concatenate([batch.own, batch.neighbours])
        self.features_sum, self.features = feature_sum(data.features.take(sources), device)
        labels = data.labels[batch.own]
        self.targets = device.array(labels[:, None] == np.arange(data.n_classes))
        # A node that is in the batch twice is learnt from once.
        first = np.zeros(self.n_own, bool)
        first[np.unique(batch.own, return_index=True)[1]] = True
        self.first = device.array(first[:, None])
        counts = first & train[batch.own]
        self.counts = device.array(counts[:, None] / train.sum())

    def spread(self, products: Any) -> Any:
        """Return the outputs of a layer from its inputs times its weight."""
        if not self.own_apart:
            return self.neighbours_sum.forward(products, self.weight)
        dim = products.shape[1] // 2
        output = self.neighbours_sum.forward(products[:, :dim], self.weight)
        output += products[: self.n_own, dim:]
        return output

    def gather(self, grad_output: Any) -> Any:
        """Return the gradient for the products that were spread."""
        grad = self.neighbours_sum.backward(grad_output, self.weight)
        if not self.own_apart:
            return grad
        of_own = np.zeros_like(grad)
        of_own[: self.n_own] = grad_output
        return np.concatenate([grad, of_own], axis=1)

    def hear(self, grad_outputs: Any) -> Any:
        """Return the gradient for own products from the neighbours' outputs, links turned round."""
        live = np.zeros_like(grad_outputs, shape=(self.n_own, grad_outputs.shape[1]))
        rows = np.concatenate([live, grad_outputs])
        return self.first * self.neighbours_sum.forward(rows, self.weight_back)
