"""GAT and GATv2 for node classification: two layers, as in the papers' transductive experiments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from edgegrad import from_coo
from edgegrad.datasets import NodeGraph
from edgegrad.train.adam import Arrays, named
from edgegrad.train.attention import Attention, Heads
from edgegrad.train.device import Device
from edgegrad.train.dropout import Dropout
from edgegrad.train.projection import DenseProjection, SparseProjection

TITLES = {"gat": "GAT", "gatv2": "GATv2"}


@dataclass(frozen=True)
class Settings:
    """The settings for Cora and CiteSeer in the paper on GAT are the default ones."""

    model: str = "gat"
    heads: int = 8
    hidden: int = 8  # width of each head
    out_heads: int = 1  # heads of the second layer, which are averaged
    raw: bool = False  # take the features as they are, rather than divide each row by its sum
    epochs: int = 2000
    patience: int = 100
    lr: float = 0.005
    l2: float = 5e-4
    dropout: float = 0.6

    @property
    def title(self) -> str:
        """Name of the model."""
        return TITLES[self.model]

    def shape(self) -> str:
        """Say how the model is built."""
        return f"{self.heads} heads of {self.hidden}, then {self.out_heads}"

    def schedule(self) -> str:
        """Say how it is trained."""
        return (
            f"at most {self.epochs} epochs, patience {self.patience}, lr {self.lr:g}, "
            f"l2 {self.l2:g}, dropout {self.dropout:g}"
        )


class GAT:
    """Two layers with ELU between them; the second gives a row of logits for each node."""

    def __init__(self, data: NodeGraph, settings: Settings, device: Device) -> None:
        self.device, self.l2, self.dropout = device, settings.l2, settings.dropout
        # A node attends to itself too, so that none is without a neighbour.
        loops = np.arange(data.n_nodes, dtype=np.int32)
        src, dst = (np.concatenate([ends, loops]) for ends in data.edge_index)
        graph = device.graph(from_coo(src, dst, data.n_nodes))
        features = data.features if settings.raw else data.features.normalised()
        heads = Heads(settings.heads, settings.hidden, concat=True)
        out_heads = Heads(settings.out_heads, data.n_classes, concat=False)
        sparse = SparseProjection(features, device)
        self.first = Attention(settings.model, graph, sparse, features.n_columns, heads, device)
        self.second = Attention(
            settings.model, graph, DenseProjection(), heads.dim_all, out_heads, device
        )
        self.targets = device.array(data.labels[:, None] == np.arange(data.n_classes))

    def initialise(self, rng: np.random.Generator) -> Arrays:
        """Draw new parameters and return them by name; the optimiser changes them in place."""
        first, second = self.first.initialise(rng), self.second.initialise(rng)
        self.params = named(first=first, second=second)
        return self.params

    def forward(self, dropout: Dropout | None = None) -> Any:
        """Return the logits of all nodes; with `dropout`, of inputs and of attention in both."""
        sums = self.first.forward(None, dropout)
        # ELU in two halves, of which one is 0.
        self.hidden = np.maximum(sums, 0) + (np.exp(np.minimum(sums, 0)) - 1)
        return self.second.forward(self.hidden, dropout)

    def backward(self, grad_logits: Any) -> Arrays:
        """Return the gradient of every parameter, from the last forward."""
        grad_hidden, second = self.second.backward(grad_logits)
        grad_hidden *= 1 + np.minimum(self.hidden, 0)
        _, first = self.first.backward(grad_hidden)
        grads = named(first=first, second=second)
        # As in the authors' code all parameters are kept small, by l2 * sum(p**2) / 2.
        for name, grad in grads.items():
            grad += self.l2 * self.params[name]
        return grads
