"""What a training has brought, as text for a person or as data for a program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from edgegrad.datasets import Parts, Task
from edgegrad.train.fit import Run, Settings

N_EXAMPLES = 10
USES = {"train": "to learn from", "validation": "to stop by", "test": "to test on"}


@dataclass(frozen=True)
class Example:
    """A row that was not learnt from."""

    item: str
    predicted: str
    truth: str


@dataclass(frozen=True)
class Report:
    """A finished training over one or more seeds."""

    data: Task
    settings: Settings
    device: str
    dtype: str
    n_params: int
    runs: Sequence[Run]

    def examples(self) -> list[Example]:
        """Pick a few rows that the first seed was tested on, by chance and not by success."""
        run, data = self.runs[0], self.data
        rows = np.flatnonzero(run.parts["test"])
        picked = np.random.default_rng(run.seed).permutation(rows)[:N_EXAMPLES]
        return [
            Example(
                data.row_name(int(row)),
                data.class_names[run.predicted[row]],
                data.class_names[data.labels[row]],
            )
            for row in picked
        ]

    def majority(self) -> float:
        """Measure what always guessing the most frequent class of the training rows would give."""
        shares, labels = [], self.data.labels
        for run in self.runs:
            guess = np.bincount(labels[run.parts["train"]]).argmax()
            shares.append((labels[run.parts["test"]] == guess).mean())
        return float(np.mean(shares))

    def ms_per_epoch(self) -> float | None:
        """Average over all seeds; evaluation of the curves belongs to an epoch too."""
        epochs = sum(run.epochs for run in self.runs)
        return 1e3 * sum(run.seconds for run in self.runs) / epochs if epochs else None

    def as_dict(self) -> dict[str, Any]:
        """Give everything that `text` says, and each seed's result, in plain types for JSON."""
        runs = self.runs
        accuracy = [run.accuracy["test"][run.best] for run in runs]
        return {
            "model": self.settings.title,
            "data": self.data.name,
            **{f"n_{what}": n for what, n in self.data.counts().items()},
            **{f"n_{part}": int(rows.sum()) for part, rows in runs[0].parts.items()},
            "n_params": self.n_params,
            "device": self.device,
            "dtype": self.dtype,
            "settings": asdict(self.settings),
            "seeds": [run.seed for run in runs],
            "epochs": [run.epochs for run in runs],
            "best_epoch": [run.best for run in runs],
            "test_accuracy": accuracy,
            "test_accuracy_mean": float(np.mean(accuracy)),
            "test_accuracy_std": float(np.std(accuracy)),
            "majority_accuracy": self.majority(),
            "train_loss": [run.loss["train"][run.best] for run in runs],
            "seconds": sum(run.seconds for run in runs),
            "ms_per_epoch": self.ms_per_epoch(),
            "examples": [asdict(example) for example in self.examples()],
        }

    def text(self) -> str:
        """Set two tables: the numbers, then the examples."""
        examples = [
            (e.item, e.predicted, e.truth, "" if e.predicted == e.truth else "wrong")
            for e in self.examples()
        ]
        return "\n".join(
            [
                f"{self.settings.title}, {self.data.task} on {self.data.name}",
                "",
                *table(self._numbers()),
                "",
                f"A few of those that seed {self.runs[0].seed} was tested on:",
                "",
                *table([(self.data.item, "predicted", "truth", ""), *examples]),
            ]
        )

    def _numbers(self) -> list[tuple[str, str]]:
        d, settings, n_seeds = self.as_dict(), self.settings, len(self.runs)
        accuracy, epochs, ms = d["test_accuracy"], d["epochs"], d["ms_per_epoch"]
        spread = f" +- {d['test_accuracy_std']:.4f}" if n_seeds > 1 else ""
        between = f" (min {min(accuracy):.4f}, max {max(accuracy):.4f})" if n_seeds > 1 else ""
        return [
            *((what, f"{n:,}") for what, n in self.data.counts().items()),
            ("labelled", self._split(self.runs[0].parts)),
            ("model", f"{settings.shape()}, {self.n_params:,} parameters"),
            ("training", settings.schedule()),
            ("runs on", f"{d['device']}, {d['dtype']}"),
            ("epochs", f"{np.mean(epochs):.0f} (min {min(epochs)}, max {max(epochs)})"),
            ("time per epoch", "-" if ms is None else f"{ms:.2f} ms"),
            ("seeds", f"{n_seeds}, from {d['seeds'][0]}"),
            ("training loss", f"{np.mean(d['train_loss']):.4f}"),
            ("test accuracy", f"{d['test_accuracy_mean']:.4f}{spread}{between}"),
            ("majority class", f"{d['majority_accuracy']:.4f}"),
        ]

    def _split(self, parts: Parts) -> str:
        origin = "of its own" if self.data.own_split else "drawn anew for every seed"
        sizes = (f"{rows.sum():,} {USES[part]}" for part, rows in parts.items())
        return f"{', '.join(sizes)}; split {origin}"


def table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Set rows in columns, indented."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    lines = ("   ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) for row in rows)
    return [f"  {line}".rstrip() for line in lines]
