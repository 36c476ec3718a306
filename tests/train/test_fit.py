from __future__ import annotations

import numpy as np
import pytest

from edgegrad.train.fit import Run, Stop

ROWS = np.ones(1, dtype=bool)


def follow(patience: int | None, curve: list[tuple[float, float]]) -> tuple[int, int]:
    """Give the best epoch, and the one after which it ended, of a curve of (loss, accuracy)."""
    run, stop, best = Run(0, {"train": ROWS, "validation": ROWS, "test": ROWS}), Stop(patience), -1
    run.loss["validation"], run.accuracy["validation"] = [], []
    for epoch, (loss, accuracy) in enumerate(curve):
        run.loss["validation"].append(loss)
        run.accuracy["validation"].append(accuracy)
        if stop.is_best(run):
            best = epoch
        if stop.due:
            return best, epoch
    return best, len(curve) - 1


def test_best_is_the_last_epoch_that_is_good_in_both() -> None:
    assert follow(9, [(3, 0.1), (2, 0.5), (2, 0.5), (1, 0.4), (3, 0.6)]) == (2, 4)


@pytest.mark.parametrize("progress", [(1, 0.4), (3, 0.5)], ids=["loss", "accuracy"])
def test_one_of_the_two_is_enough_to_go_on(progress: tuple[float, float]) -> None:
    curve = [(2, 0.5), (3, 0.4), progress, (3, 0.4), (3, 0.4), (3, 0.4)]
    assert follow(2, curve) == (0, 4)
    assert follow(2, [curve[0], *curve[3:]]) == (0, 2)


def test_without_patience_the_last_epoch_counts() -> None:
    assert follow(None, [(1, 0.9), (2, 0.1)]) == (1, 1)
