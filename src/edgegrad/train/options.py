"""Command-line options that every training shares, and the kinds of values they take."""

from __future__ import annotations

import math
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable
from pathlib import Path

from edgegrad.train.device import DTYPES, NAMES


def whole(minimum: int) -> Callable[[str], int]:
    """Take a whole number that is not below the minimum."""

    def parse(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise ArgumentTypeError(f"got {text!r}, expected a whole number") from None
        if value < minimum:
            raise ArgumentTypeError(f"got {value}, expected at least {minimum}")
        return value

    return parse


def real(text: str) -> float:
    """Take a finite number that is not negative."""
    try:
        value = float(text)
    except ValueError:
        raise ArgumentTypeError(f"got {text!r}, expected a number") from None
    if not math.isfinite(value) or value < 0:
        raise ArgumentTypeError(f"got {value:g}, expected a finite number, at least 0")
    return value


def probability(text: str) -> float:
    """Take a number from 0 to 1, but not 1 itself."""
    value = real(text)
    if value >= 1:
        raise ArgumentTypeError(f"got {value:g}, expected a number below 1")
    return value


def add_count(
    parser: ArgumentParser, name: str, minimum: int, default: int | None, help: str
) -> None:
    """Add an option that takes a whole number; without a default, `help` says what happens."""
    help = help if default is None else f"{help} ({default})"
    parser.add_argument(name, type=whole(minimum), default=default, metavar="N", help=help)


def add_number(
    parser: ArgumentParser,
    name: str,
    default: float | None,
    help: str,
    kind: Callable[[str], float] = real,
) -> None:
    """Add an option that takes a number of a kind; without a default, as `add_count`."""
    help = help if default is None else f"{help} ({default:g})"
    parser.add_argument(name, type=kind, default=default, metavar="X", help=help)


def add_training(parser: ArgumentParser, *, epochs: int, lr: float, l2: float) -> None:
    """Add the options of an optimiser that is given a number of epochs."""
    add_count(parser, "--epochs", 0, epochs, "full-batch steps")
    add_number(parser, "--lr", lr, "learning rate of Adam")
    add_number(parser, "--l2", l2, "weight decay of the first layer")


def add_run(parser: ArgumentParser) -> None:
    """Add the options of the run, which no model has a say in."""
    add_count(parser, "--seeds", 1, 10, "how many trainings, each with a seed of its own")
    add_count(parser, "--seed", 0, 0, "the first of the seeds")
    add = parser.add_argument
    add("--device", choices=NAMES, default=NAMES[0], help="cuda needs CuPy (%(default)s)")
    add("--dtype", choices=DTYPES, default=DTYPES[0], help="(%(default)s)")
    add("--json", action="store_true", help="print the result as JSON")
    add("--plot", type=Path, metavar="FILE", help="draw loss and accuracy curves, e.g. curves.png")
