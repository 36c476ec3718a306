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

Curves = dict[str, list[list[float]]]  # by part of the data: one curve for each seed
COLORS = {"train": "tab:blue", "validation": "tab:green", "test": "tab:orange"}


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
    """Draw the curves of a report."""
    runs, first = report.runs, report.runs[0]
    curves(
        path,
        f"{report.settings.title} on {report.data.name}",
        {part: [run.loss[part] for run in runs] for part in first.loss},
        {part: [run.accuracy[part] for run in runs] for part in first.accuracy},
        {"majority class": report.majority()},
    )


def curves(
    path: Path,
    title: str,
    losses: Curves,
    accuracies: Curves,
    levels: Mapping[str, float] = MappingProxyType({}),
) -> None:
    """Draw the mean over the seeds, and one standard deviation to either side of it."""
    picture = figure()
    of_loss, of_accuracy = sides = picture.subplots(1, 2)
    for axes, drawn in zip(sides, (losses, accuracies), strict=True):
        for part, values in drawn.items():
            _curve(axes, values, part)
            axes.set_xlim(0, max(1, *(len(curve) - 1 for curve in values)))
        axes.set_xlabel("epochs done")
        axes.grid(alpha=0.3)
    for what, level in levels.items():
        of_accuracy.axhline(level, color="0.5", linestyle=":", label=what)
    of_loss.set_ylabel("cross-entropy")
    of_loss.set_ylim(bottom=0)
    of_accuracy.set_ylabel("accuracy")
    of_accuracy.set_ylim(0, 1.02)
    of_accuracy.legend(loc="best", edgecolor="none")
    n_seeds = len(losses["train"])
    many = f"mean and standard deviation of {n_seeds} seeds" if n_seeds > 1 else "1 seed"
    picture.suptitle(f"{title}, {many}", fontsize="medium")
    try:
        picture.savefig(path, dpi=150)
    except OSError as error:
        raise DataError(f"--plot {path}: cannot be written ({error.strerror or error})") from None


def _curve(axes: Any, curves: list[list[float]], part: str) -> None:
    # A seed that has stopped no longer counts; at every epoch at least one has not.
    values = np.full((len(curves), max(map(len, curves))), np.nan)
    for row, curve in zip(values, curves, strict=True):
        row[: len(curve)] = curve
    mean, spread = np.nanmean(values, axis=0), np.nanstd(values, axis=0)
    color, epochs = COLORS[part], np.arange(values.shape[1])
    axes.plot(epochs, mean, color=color, label=part)
    if len(curves) > 1:
        axes.fill_between(epochs, mean - spread, mean + spread, color=color, alpha=0.2, linewidth=0)
