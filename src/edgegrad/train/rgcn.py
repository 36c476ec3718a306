"""R-GCN for entity classification (Schlichtkrull et al. 2018)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from edgegrad.datasets import EntityGraph
from edgegrad.train.adam import Arrays, named
from edgegrad.train.device import Device
from edgegrad.train.dropout import Dropout
from edgegrad.train.layers import Convolution, Messages, NodeTables


@dataclass(frozen=True)
class Settings:
    """The paper's settings for AIFB are the default ones."""

    hidden: int = 16
    n_bases: int = 0  # 0: every relation has matrices of its own
    epochs: int = 50
    lr: float = 0.01
    l2: float = 0.0

    title = "R-GCN"
    patience = None  # the paper has no validation part to stop by

    def shape(self) -> str:
        """Say how the model is built."""
        return f"hidden {self.hidden}, {self.n_bases or 'no'} bases"

    def schedule(self) -> str:
        """Say how it is trained."""
        return f"{self.epochs} epochs, lr {self.lr:g}, l2 {self.l2:g}"


class RGCN:
    """Two layers; the second gives a row of logits for each labelled entity."""

    dropout = 0.0

    def __init__(self, data: EntityGraph, settings: Settings, device: Device) -> None:
        messages = Messages.of(data)
        self.device, self.l2 = device, settings.l2
        self.first = NodeTables(messages, settings.hidden, settings.n_bases, device)
        self.second = Convolution(
            messages, data.labelled, settings.hidden, data.n_classes, settings.n_bases, device
        )
        self.targets = device.array(data.labels[:, None] == np.arange(data.n_classes))

    def initialise(self, rng: np.random.Generator) -> Arrays:
        """Draw new parameters and return them by name; the optimiser changes them in place."""
        first, second = self.first.initialise(rng), self.second.initialise(rng)
        self.params = named(first=first, second=second)
        return self.params

    def forward(self, dropout: Dropout | None = None) -> Any:
        """Return the logits of the labelled entities; nothing is dropped."""
        hidden = self.first.forward()
        np.maximum(hidden, 0, out=hidden)
        return self.second.forward(hidden)

    def backward(self, grad_logits: Any) -> Arrays:
        """Return the gradient of every parameter, from the last forward."""
        grad_hidden, second = self.second.backward(grad_logits)
        grad_hidden *= self.second.input > 0
        first = self.first.backward(grad_hidden)
        # As in the authors' code the first layer alone is kept small, by l2 * sum(p**2).
        for name, grad in first.items():
            if self.l2:
                grad += 2 * self.l2 * self.params[f"first.{name}"]
        return named(first=first, second=second)
