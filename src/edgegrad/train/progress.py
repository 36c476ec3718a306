"""A progress bar, where there is somebody to see it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress(total: int, what: str, unit: str = "epochs") -> Iterator[Callable[[str, int], None]]:
    """Give a function of a few words and a number of steps: shows the words, moves the bar on.

    The bar goes to stderr and needs a terminal there and the package rich; else nothing is shown.
    """
    try:
        if not sys.stderr.isatty():
            raise ImportError
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
    except ImportError:
        yield lambda words, steps: None
        return
    columns = (
        TextColumn(what),
        BarColumn(),
        TextColumn(f"{{task.completed}}/{{task.total}} {unit}"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[words]}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total, words="")
        yield lambda words, steps: bar.update(task, advance=steps, words=words)
