"""Loss and accuracy curves as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from edgegrad.datasets import DataError, MissingPackageError

if TYPE_CHECKING:
    from edgegrad.train.report import Report


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
    """Draw the mean over the seeds, and one standard deviation to either side of it."""
    picture = figure()
    of_loss, of_accuracy = picture.subplots(1, 2)
    runs = report.runs
    _curve(of_loss, [run.loss for run in runs], "training", "tab:blue")
    _curve(of_accuracy, [run.train_accuracy for run in runs], "training", "tab:blue")
    _curve(of_accuracy, [run.test_accuracy for run in runs], "test", "tab:orange")
    of_accuracy.axhline(report.majority(), color="0.5", linestyle=":", label="majority class")
    of_loss.set_ylabel("cross-entropy")
    of_loss.set_ylim(bottom=0)
    of_accuracy.set_ylabel("accuracy")
    of_accuracy.set_ylim(0, 1.02)
    of_accuracy.legend(loc="best", edgecolor="none")
    for axes in (of_loss, of_accuracy):
        axes.set_xlabel("epochs done")
        axes.set_xlim(0, max(1, report.settings.epochs))
        axes.grid(alpha=0.3)
    many = f"mean and standard deviation of {len(runs)} seeds" if len(runs) > 1 else "1 seed"
    picture.suptitle(f"R-GCN on {report.data.name}, {many}", fontsize="medium")
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
