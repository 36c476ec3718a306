"""What calls of the native host kernels share."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

# Rows with more edges are cut, so that one thread never holds up the others.
PIECE_EDGES = 4096


class Turns:
    """Readers together, a writer alone."""

    def __init__(self) -> None:
        self._free, self._n_readers = threading.Condition(), 0

    @contextmanager
    def together(self) -> Iterator[None]:
        """Read inside."""
        with self._free:
            self._n_readers += 1
        try:
            yield
        finally:
            with self._free:
                self._n_readers -= 1
                self._free.notify_all()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Write inside."""
        with self._free:  # keeps others out until the end
            while self._n_readers:
                self._free.wait()
            yield
