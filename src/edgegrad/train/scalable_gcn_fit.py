"""The training of ScalableGCN over some seeds, and what is said of it."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from edgegrad.train.adam import Adam
from edgegrad.train.dropout import Dropout
from edgegrad.train.report import table
from edgegrad.train.scalable_gcn import ScalableGCN


@dataclass
class Run:
    """What one seed brought; curves have a value after each epoch."""

    seed: int
    loss: list[float] = field(default_factory=list)
    accuracy: dict[str, list[float]] = field(default_factory=dict)  # by part
    seconds: float = 0.0  # in steps, without evaluation

    @property
    def result(self) -> float:
        """Test accuracy of the epoch that validation likes best, the last one among equals."""
        of_test = self.accuracy["test"]
        guide = self.accuracy.get("validation", [0.0])  # no such nodes: the last epoch counts
        return of_test[-1 - int(np.argmax(guide[::-1]))]


def fit(
    model: ScalableGCN,
    epochs: int,
    lr: float,
    seed: int,
    on_epoch: Callable[[Run], None] = lambda run: None,
) -> Run:
    """Train from new parameters and empty stores; the seed also shuffles batches and drops out."""
    for_params, for_order, for_dropout = (
        np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(3)
    )
    run, rate = Run(seed), model.settings.dropout
    dropout = Dropout(rate, for_dropout, model.device) if rate else None
    adam = Adam(model.initialise(for_params), lr)
    model.clear()
    for epoch in range(epochs):
        start, loss = time.perf_counter(), 0.0
        with np.errstate(over="ignore", invalid="ignore"):  # a loss of nan is told below
            for i in for_order.permutation(len(model.pieces)):
                part, grads = model.step(model.pieces[i], dropout)
                adam.step(grads)
                loss += part
        model.store.step()
        run.seconds += time.perf_counter() - start
        if not np.isfinite(loss):
            raise FloatingPointError(f"seed {seed}: the loss is {loss} after {epoch + 1} epochs")
        right = model.device.to_host(model.evaluate().argmax(axis=1)) == model.data.labels
        run.loss.append(loss)
        for part, rows in model.split.items():
            run.accuracy.setdefault(part, []).append(float(right[rows].mean()))
        on_epoch(run)
    return run


@dataclass(frozen=True)
class Report:
    """A finished training over one or more seeds."""

    model: ScalableGCN
    epochs: int
    lr: float
    partition: str
    runs: Sequence[Run]

    def as_dict(self) -> dict[str, Any]:
        """Give everything that `text` says, and each seed's result, in plain types for JSON."""
        model, data = self.model, self.model.data
        accuracy = [run.result for run in self.runs]
        return {
            "data": data.name,
            **{f"n_{what}": n for what, n in data.counts().items()},
            **{f"n_{part}": int(rows.sum()) for part, rows in model.split.items()},
            "settings": asdict(model.settings),
            "epochs": self.epochs,
            "lr": self.lr,
            "partition": self.partition,
            "n_parts": len(model.pieces),
            "own_rows_max": max(piece.n_own for piece in model.pieces),
            "pulled_rows_max": max(len(piece.neighbours) for piece in model.pieces),
            "store_bytes": model.store_bytes,
            "stores_mapped": model.folder is not None,
            "device": model.device.name,
            "dtype": str(model.device.dtype),
            "seeds": [run.seed for run in self.runs],
            "test_accuracy": accuracy,
            "test_accuracy_mean": float(np.mean(accuracy)),
            "test_accuracy_std": float(np.std(accuracy)),
            "train_loss": [run.loss[-1] for run in self.runs],
            "ms_per_epoch": 1e3 * sum(r.seconds for r in self.runs) / len(self.runs) / self.epochs,
            "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        }

    def text(self) -> str:
        """Set a table of the numbers."""
        d, model = self.as_dict(), self.model
        s, accuracy = d["settings"], d["test_accuracy"]
        spread = f" +- {d['test_accuracy_std']:.4f}" if len(accuracy) > 1 else ""
        mapped = d["stores_mapped"]
        rows = [
            ("nodes", f"{d['n_nodes']:,}, {d['n_train']} to learn from, {d['n_test']} to test"),
            ("edges", f"{d['n_edges']:,}"),
            ("batches", f"{d['n_parts']} ({d['partition']}), at most {d['own_rows_max']:,} nodes"),
            ("neighbours", f"{s['neighbours']}, at most {d['pulled_rows_max']:,} rows pulled"),
            ("gradients", s["gradients"]),
            ("model", f"{s['layers']} layers, hidden {s['hidden']}, dropout {s['dropout']:g}"),
            ("training", f"{self.epochs} epochs, lr {self.lr:g}, l2 {s['l2']:g}"),
            ("runs on", f"{d['device']}, {d['dtype']}"),
            ("stores", f"{d['store_bytes'] / 2**20:.1f} MiB{', in mapped files' * mapped}"),
            ("peak memory", f"{d['peak_mib']:.0f} MiB, all of the process"),
            ("time per epoch", f"{d['ms_per_epoch']:.2f} ms"),
            ("seeds", f"{len(accuracy)}, from {d['seeds'][0]}"),
            ("training loss", f"{np.mean(d['train_loss']):.4f}"),
            ("test accuracy", f"{d['test_accuracy_mean']:.4f}{spread}"),
        ]
        title = f"{model.settings.title}, node classification on {d['data']}"
        return "\n".join([title, "", *table(rows)])
