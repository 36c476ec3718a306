"""Loss and accuracy curves as a picture."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from edgegrad.datasets import DataError, MissingPackageError

if TYPE_CHECKING:
    from edgegrad.train.report import Report

_NAMES = ("cross-entropy", "accuracy")


def figure() -> Any:
    """Make an empty picture; it belongs to no window, so that no display is needed."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingPackageError("matplotlib", "--plot") from None
    picture = Figure(figsize=(9, 3.6), layout="constrained")
    FigureCanvasAgg(picture)
    return picture


def check_target(path: Path) -> None:
    """Find out before the training whether the picture can be written after it."""
    formats = figure().canvas.get_supported_filetypes()
    if path.suffix.lstrip(".").lower() not in formats:
        raise DataError(f"--plot {path}: unknown kind of picture, expected a name like curves.png")
    if not path.absolute().parent.is_dir():
        raise DataError(f"--plot {path}: no such folder {path.parent}")


def draw(report: Report, path: Path) -> None:
    """Draw the curves of a training of R-GCN."""
    runs = report.runs
    curves(
        path,
        f"R-GCN on {report.data.name}",
        {"training": [run.loss for run in runs]},
        {
            "training": [run.train_accuracy for run in runs],
            "test": [run.test_accuracy for run in runs],
        },
        {"majority class": report.majority()},
    )


Curves = dict[str, list[list[float]]]  # by what they are of: one curve for each seed


def curves(
    path: Path,
    title: str,
    losses: Curves,
    accuracies: Curves,
    levels: Mapping[str, float] = MappingProxyType({}),
) -> None:
    """Draw the mean over the seeds, and one standard deviation to either side of it."""
    picture = figure()
    sides = picture.subplots(1, 2)
    for axes, drawn, name in zip(sides, (losses, accuracies), _NAMES, strict=True):
        for (what, values), color in zip(drawn.items(), ("tab:blue", "tab:orange"), strict=False):
            _curve(axes, values, what, color)
        axes.set_ylabel(name)
        axes.set_ylim(0, 1.02 if drawn is accuracies else None)
        axes.set_xlabel("epochs done")
        axes.set_xlim(0, max(1, max(len(c) for c in values) - 1))
        axes.grid(alpha=0.3)
    for what, level in levels.items():
        sides[1].axhline(level, color="0.5", linestyle=":", label=what)
    sides[1].legend(loc="best", edgecolor="none")
    n_seeds = len(next(iter(losses.values())))
    many = f"mean and standard deviation of {n_seeds} seeds" if n_seeds > 1 else "1 seed"
    picture.suptitle(f"{title}, {many}", fontsize="medium")
    try:
        picture.savefig(path, dpi=150)
    except OSError as error:
        raise DataError(f"--plot {path}: cannot be written ({error.strerror or error})") from None


def _curve(axes: Any, curves: list[list[float]], label: str, color: str) -> None:
    values = np.asarray(curves)
    mean, spread, epochs = values.mean(axis=0), values.std(axis=0), np.arange(values.shape[1])
    axes.plot(epochs, mean, color=color, label=label)
    if len(curves) > 1:
        axes.fill_between(epochs, mean - spread, mean + spread, color=color, alpha=0.2, linewidth=0)
