"""R-GCN for entity classification: the model and its training (Schlichtkrull et al. 2018)."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgegrad.datasets import EntityGraph
from edgegrad.train.adam import Adam, Arrays
from edgegrad.train.device import Device
from edgegrad.train.layers import Convolution, Messages, NodeTables
from edgegrad.train.loss import cross_entropy


@dataclass(frozen=True)
class Settings:
    """The paper's settings for AIFB are the default ones."""

    hidden: int = 16
    n_bases: int = 0  # 0: every relation has matrices of its own
    epochs: int = 50
    lr: float = 0.01
    l2: float = 0.0


class RGCN:
    """Two layers; the second gives a row of logits for each labelled entity."""

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
        self.params = {f"first.{k}": v for k, v in self.first.initialise(rng).items()}
        self.params |= {f"second.{k}": v for k, v in self.second.initialise(rng).items()}
        return self.params

    def forward(self) -> Any:
        """Return the logits of the labelled entities."""
        hidden = self.first.forward()
        np.maximum(hidden, 0, out=hidden)
        return self.second.forward(hidden)

    def backward(self, grad_logits: Any) -> Arrays:
        """Return the gradient of every parameter, from the last forward."""
        grad_hidden, grads = self.second.backward(grad_logits)
        grad_hidden *= self.second.input > 0
        grads = {f"second.{k}": v for k, v in grads.items()}
        grads |= {f"first.{k}": v for k, v in self.first.backward(grad_hidden).items()}
        # As in the authors' code the first layer alone is kept small, by l2 * sum(p**2).
        for name, grad in grads.items():
            if self.l2 and name.startswith("first."):
                grad += 2 * self.l2 * self.params[name]
        return grads

    @property
    def n_params(self) -> int:
        """Count the numbers that are learnt."""
        return sum(p.size for p in self.params.values())


@dataclass
class Run:
    """What one seed brought; curves have a value before the first step and after each one."""

    seed: int
    train: NDArray[np.bool_]  # (n_labelled,): the rows that were learnt from
    predicted: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    loss: list[float] = field(default_factory=list)
    train_accuracy: list[float] = field(default_factory=list)
    test_accuracy: list[float] = field(default_factory=list)
    seconds: float = 0.0  # the whole training

    def record(self, loss: float, predicted: NDArray[np.int64], labels: NDArray[np.int64]) -> None:
        """Add a point to the curves."""
        self.predicted = predicted
        right = predicted == labels
        self.loss.append(loss)
        self.train_accuracy.append(float(right[self.train].mean()))
        self.test_accuracy.append(float(right[~self.train].mean()))


def fit(
    model: RGCN,
    data: EntityGraph,
    settings: Settings,
    seed: int,
    on_epoch: Callable[[Run], None] = lambda run: None,
) -> Run:
    """Train from new parameters, full batch; the seed decides on them and on a random split."""
    for_split, for_params = (
        np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(2)
    )
    run = Run(seed, data.split(for_split))
    weights = model.device.array(run.train[:, None] / run.train.sum())
    adam = Adam(model.initialise(for_params), settings.lr)
    start = time.perf_counter()
    with np.errstate(over="ignore", invalid="ignore"):  # a loss of nan is told below, in one line
        for epoch in range(settings.epochs + 1):
            logits = model.forward()
            loss, grad_logits = cross_entropy(logits, model.targets, weights)
            if not np.isfinite(loss):
                raise FloatingPointError(f"seed {seed}: the loss is {loss} after {epoch} epochs")
            run.record(loss, model.device.to_host(logits.argmax(axis=1)), data.labels)
            if epoch < settings.epochs:
                adam.step(model.backward(grad_logits))
                on_epoch(run)
    run.seconds = time.perf_counter() - start
    return run
