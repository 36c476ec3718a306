"""What a training has brought, as text for a person or as data for a program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from edgegrad.datasets import EntityGraph
from edgegrad.train.rgcn import Run, Settings

N_EXAMPLES = 10


@dataclass(frozen=True)
class Example:
    """An entity that was not learnt from."""

    entity: str
    predicted: str
    truth: str


@dataclass(frozen=True)
class Report:
    """A finished training over one or more seeds."""

    data: EntityGraph
    settings: Settings
    device: str
    dtype: str
    n_params: int
    runs: Sequence[Run]

    def examples(self) -> list[Example]:
        """Pick a few entities that the first seed was tested on, by chance and not by success."""
        run, data = self.runs[0], self.data
        rows = np.flatnonzero(~run.train)
        picked = np.random.default_rng(run.seed).permutation(rows)[:N_EXAMPLES]
        return [
            Example(
                data.label_of(int(data.labelled[row])),
                data.class_names[run.predicted[row]],
                data.class_names[data.labels[row]],
            )
            for row in picked
        ]

    def majority(self) -> float:
        """Measure what always guessing the most frequent class of the training rows would give."""
        shares, labels = [], self.data.labels
        for run in self.runs:
            guess = np.bincount(labels[run.train]).argmax()
            shares.append((labels[~run.train] == guess).mean())
        return float(np.mean(shares))

    def ms_per_epoch(self) -> float | None:
        """Average over all seeds; a forward, a backward and a step of Adam make an epoch."""
        if not self.settings.epochs:
            return None
        return 1e3 * sum(run.seconds for run in self.runs) / len(self.runs) / self.settings.epochs

    def as_dict(self) -> dict[str, Any]:
        """Give everything that `text` says, and each seed's result, in plain types for JSON."""
        data, accuracy = self.data, [run.test_accuracy[-1] for run in self.runs]
        return {
            "data": data.name,
            "n_entities": data.n_entities,
            "n_triples": data.n_triples,
            "n_relations": data.n_relations,
            "n_classes": data.n_classes,
            "n_train": int(self.runs[0].train.sum()),
            "n_test": int((~self.runs[0].train).sum()),
            "n_params": self.n_params,
            "device": self.device,
            "dtype": self.dtype,
            "settings": asdict(self.settings),
            "seeds": [run.seed for run in self.runs],
            "test_accuracy": accuracy,
            "test_accuracy_mean": float(np.mean(accuracy)),
            "test_accuracy_std": float(np.std(accuracy)),
            "majority_accuracy": self.majority(),
            "train_loss": [run.loss[-1] for run in self.runs],
            "ms_per_epoch": self.ms_per_epoch(),
            "examples": [asdict(example) for example in self.examples()],
        }

    def text(self) -> str:
        """Set two tables: the numbers, then the examples."""
        return "\n".join(
            [
                f"R-GCN, entity classification on {self.data.name}",
                "",
                *table(self._numbers()),
                "",
                f"A few of the entities that seed {self.runs[0].seed} did not learn from:",
                "",
                *table(
                    [
                        (self.data.entity, "predicted", "truth", ""),
                        *(
                            (
                                e.entity,
                                e.predicted,
                                e.truth,
                                "" if e.predicted == e.truth else "wrong",
                            )
                            for e in self.examples()
                        ),
                    ]
                ),
            ]
        )

    def _numbers(self) -> list[tuple[str, str]]:
        d, settings = self.as_dict(), self.settings
        accuracy, n_seeds = d["test_accuracy"], len(self.runs)
        spread = f" +- {d['test_accuracy_std']:.4f}" if n_seeds > 1 else ""
        between = f" (min {min(accuracy):.4f}, max {max(accuracy):.4f})" if n_seeds > 1 else ""
        split = "of its own" if self.data.train is not None else "drawn anew for every seed"
        bases = f"{settings.n_bases} bases" if settings.n_bases else "no bases"
        ms = d["ms_per_epoch"]
        return [
            ("entities", f"{d['n_entities']:,}"),
            ("triples", f"{d['n_triples']:,}"),
            ("relations", f"{d['n_relations']} and their inverses, and one to itself"),
            ("labelled", f"{d['n_train']} to learn from, {d['n_test']} to test; split {split}"),
            ("model", f"hidden {settings.hidden}, {bases}, {d['n_params']:,} parameters"),
            ("training", f"{settings.epochs} epochs, lr {settings.lr:g}, l2 {settings.l2:g}"),
            ("runs on", f"{d['device']}, {d['dtype']}"),
            ("time per epoch", "-" if ms is None else f"{ms:.2f} ms"),
            ("seeds", f"{n_seeds}, from {d['seeds'][0]}"),
            ("training loss", f"{np.mean(d['train_loss']):.4f}"),
            ("test accuracy", f"{d['test_accuracy_mean']:.4f}{spread}{between}"),
            ("majority class", f"{d['majority_accuracy']:.4f}"),
        ]


def table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Set rows in columns, indented."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    lines = ("   ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) for row in rows)
    return [f"  {line}".rstrip() for line in lines]
