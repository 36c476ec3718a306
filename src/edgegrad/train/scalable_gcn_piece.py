"""A batch on its device: what it sums over, what it reads, and what it is to learn."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgegrad import Batch
from edgegrad.datasets import NodeGraph
from edgegrad.train.device import Device
from edgegrad.train.sums import Sum, feature_sum


class Piece:
    """A batch of a node classification."""

    def __init__(
        self,
        batch: Batch,
        weight: NDArray,
        data: NodeGraph,
        train: NDArray[np.bool_],
        device: Device,
    ) -> None:
        self.n_own = len(batch.own)
        self.neighbours_sum = Sum(batch.graph, device)
        self.weight = device.array(weight[batch.positions])
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

    def spread(self, rows: Any) -> Any:
        """Return A rows, for the destinations."""
        return self.neighbours_sum.forward(rows, self.weight)

    def gather(self, grad_output: Any) -> Any:
        """Return the gradient for the rows that were spread."""
        return self.neighbours_sum.backward(grad_output, self.weight)
