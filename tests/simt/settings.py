"""How launches are executed and what is checked; changed for a while by `config`."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from typing import Any, Literal


@dataclasses.dataclass(frozen=True)
class Settings:
    """See `config`."""

    check: bool = True
    seeds: tuple[int, ...] = (0,)
    compare_seeds: Literal["bitwise"] | float | None = None
    preempt: int = 40
    strict_exit: bool = True
    strict_shuffle: bool = True
    stats: bool = False
    step_limit: int = 1 << 34
    timeout_ms: int = 20_000


_current = Settings()


def settings() -> Settings:
    """The settings in force."""
    return _current


@contextlib.contextmanager
def config(**changes: Any) -> Iterator[Settings]:
    """Run the launches of a ``with`` block under other settings.

    Parameters
    ----------
    check : bool
        Instrument every memory access. Without it only results, barriers, collectives and the
        bytes around arrays are checked, 20 to 50 times faster.
    seeds : tuple of int
        One execution each, from the same inputs. 0 is the canonical order; any other seed shuffles
        blocks and lanes and preempts threads between accesses.
    compare_seeds : "bitwise" or float, optional
        Fail if what the kernel wrote differs between seeds (by more than this rtol and atol).
    preempt : int
        Mean number of accesses between preemptions.
    strict_exit : bool
        A thread that exits before a barrier of its block is a fault. Stricter than hardware.
    strict_shuffle : bool
        Reading from a lane that takes no part in a shuffle is a fault, else a poisoned value.
    stats : bool
        Record sectors and bank conflicts per source line in the launch record.
    step_limit, timeout_ms : int
        Steps and milliseconds of processor time after which a launch is stopped.
    """
    global _current
    old, _current = _current, dataclasses.replace(_current, **changes)
    try:
        yield _current
    finally:
        _current = old
