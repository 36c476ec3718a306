"""What a launch can do wrong, as exceptions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong with a kernel, in one place.

    ``kind`` is one of: oob, read-only, misaligned, null, uninit, race, barrier, mask, shuffle,
    deadlock, timeout, local, undefined, trap, crash, canary, nondeterministic, pointer.
    """

    kind: str
    message: str
    where: str = ""
    count: int = 1

    def __str__(self) -> str:
        times = f" x{self.count}" if self.count > 1 else ""
        where = f"\n      at {self.where}" if self.where else ""
        return f"  [{self.kind}]{times} {self.message}{where}"


class SimtError(RuntimeError):
    """A launch, or a read of device memory, that a GPU would have got away with or died of."""

    def __init__(self, what: str, faults: Iterable[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__(
            "\n".join([f"{what}: {len(self.faults)} fault(s)", *map(str, self.faults)])
        )

    @property
    def kinds(self) -> set[str]:
        """The kinds of fault found."""
        return {fault.kind for fault in self.faults}


class CompileError(RuntimeError):
    """The host compiler rejected a kernel or the runtime."""
