"""The training loop: full batch, from new parameters, with curves and perhaps an early stop."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from edgegrad.datasets import Parts, Task
from edgegrad.train.adam import Adam, Arrays
from edgegrad.train.device import Device
from edgegrad.train.dropout import Dropout
from edgegrad.train.loss import cross_entropy


class Settings(Protocol):
    """How a model is built and trained: a dataclass with settings of the model's own."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def epochs(self) -> int:
        """Steps of the optimiser, at most."""
        ...

    @property
    def lr(self) -> float:
        """Learning rate of Adam."""
        ...

    @property
    def patience(self) -> int | None:
        """Epochs without progress on the validation part after which to stop; None: go on."""
        ...

    @property
    def title(self) -> str:
        """Name of the model."""
        ...

    def shape(self) -> str:
        """Say in a few words how the model is built."""
        ...

    def schedule(self) -> str:
        """Say in a few words how it is trained."""
        ...


class Model(Protocol):
    """A forward and an explicit backward over parameters that the optimiser changes in place."""

    device: Device
    targets: Any  # (n_rows, n_classes), T: 1 for the right class of a row, 0 elsewhere
    dropout: float  # probability; 0: learning and evaluation have the same forward
    params: Arrays

    def initialise(self, rng: np.random.Generator) -> Arrays:
        """Draw new parameters and return them by name."""
        ...

    def forward(self, dropout: Dropout | None = None) -> Any:
        """Return logits (n_rows, n_classes); with `dropout` those to learn from."""
        ...

    def backward(self, grad_logits: Any) -> Arrays:
        """Return the gradient of every parameter, from the last forward."""
        ...


@dataclass
class Run:
    """What one seed brought; curves have a value before the first step and after each one."""

    seed: int
    parts: Parts
    loss: dict[str, list[float]] = field(default_factory=dict)  # of all parts but the test
    accuracy: dict[str, list[float]] = field(default_factory=dict)
    predicted: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    best: int = 0  # the epoch of the curves that `predicted` is from
    seconds: float = 0.0  # the whole training

    @property
    def epochs(self) -> int:
        """Steps that were taken."""
        return len(self.loss["train"]) - 1

    def record(
        self, loss: dict[str, float], predicted: NDArray[np.int64], labels: NDArray[np.int64]
    ) -> None:
        """Add a point to the curves."""
        for part, value in loss.items():
            self.loss.setdefault(part, []).append(value)
        right = predicted == labels
        for part, rows in self.parts.items():
            self.accuracy.setdefault(part, []).append(float(right[rows].mean()))


class Stop:
    """When to stop, and which epoch to take the result from.

    As in the authors' code of GAT: the last epoch at which both loss and accuracy of the validation
    part were as good as ever; the end comes when neither has been so for `patience` epochs.
    Without patience, or without a validation part, every epoch is better than those before.
    """

    def __init__(self, patience: int | None) -> None:
        self.patience = patience
        self.loss, self.accuracy, self.waited = np.inf, 0.0, 0

    def is_best(self, run: Run) -> bool:
        """Take note of a new point on the curves."""
        if self.patience is None or "validation" not in run.parts:
            return True
        loss, accuracy = run.loss["validation"][-1], run.accuracy["validation"][-1]
        good = loss <= self.loss, accuracy >= self.accuracy
        self.loss, self.accuracy = min(loss, self.loss), max(accuracy, self.accuracy)
        self.waited = 0 if any(good) else self.waited + 1
        return all(good)

    @property
    def due(self) -> bool:
        """Whether patience is at its end."""
        return self.patience is not None and self.waited >= self.patience


def fit(
    model: Model,
    data: Task,
    settings: Settings,
    seed: int,
    on_epoch: Callable[[Run], None] = lambda run: None,
) -> Run:
    """Train; the seed decides on the parameters, on a random split and on what is dropped."""
    for_split, for_params, for_dropout = (
        np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(3)
    )
    run, stop = Run(seed, data.split(for_split)), Stop(settings.patience)
    weights = {
        part: model.device.array(rows[:, None] / rows.sum())
        for part, rows in run.parts.items()
        if part != "test"
    }
    adam = Adam(model.initialise(for_params), settings.lr)
    dropout = Dropout(model.dropout, for_dropout, model.device) if model.dropout else None
    start = time.perf_counter()
    with np.errstate(over="ignore", invalid="ignore"):  # a loss of nan is told below, in one line
        for epoch in range(settings.epochs + 1):
            logits = model.forward()
            steps = {part: cross_entropy(logits, model.targets, w) for part, w in weights.items()}
            loss, grad_logits = steps["train"]
            if not np.isfinite(loss):
                raise FloatingPointError(f"seed {seed}: the loss is {loss} after {epoch} epochs")
            predicted = model.device.to_host(logits.argmax(axis=1))
            run.record({part: step[0] for part, step in steps.items()}, predicted, data.labels)
            if stop.is_best(run):
                run.best, run.predicted = epoch, predicted
            if stop.due or epoch == settings.epochs:
                break
            if dropout:
                logits = model.forward(dropout)
                _, grad_logits = cross_entropy(logits, model.targets, weights["train"])
            adam.step(model.backward(grad_logits))
            on_epoch(run)
    run.seconds = time.perf_counter() - start
    return run
