"""The file of a memory-mapped store: a header of one page, then its tables.

The header says what the tables are, and whether the file is clean: it is not from before the first
write after a flush until all pages are on the disk again. A process that ends in between leaves a
file that says so.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import mmap
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from edgegrad.errors import ArgumentError, wrong_value

_MAGIC = b"EGSTORE1"
_PAGE = 4096
_HEADER = np.dtype(
    [
        ("magic", "S8"),
        ("clean", "u1"),
        ("unused", "V7"),
        ("step", "<i8"),
        ("boot", "S40"),  # which run of the machine wrote last
        ("layout", "S4032"),  # a `Layout` as JSON
    ]
)


@dataclass(frozen=True)
class Layout:
    """The tables of a store: what their arrays are and where they lie in a file."""

    n_rows: int
    dim: int
    n_layers: int
    dtype: str
    grad_dtype: str  # empty: no gradients

    def arrays(self) -> dict[str, tuple[tuple[int, ...], np.dtype]]:
        """Return shape and dtype of every array."""
        shape = (self.n_layers, self.n_rows, self.dim)
        found = {
            "ages": (shape[:2], np.dtype(np.int64)),
            "tables": (shape, numpy_dtype(self.dtype)),
        }
        if self.grad_dtype:
            found["grad_tables"] = (shape, numpy_dtype(self.grad_dtype))
        return found

    def offsets(self) -> tuple[dict[str, int], int]:
        """Return where each array begins, on a page of its own, and the size of the file."""
        found, end = {}, _PAGE
        for name, (shape, dtype) in self.arrays().items():
            found[name] = end
            size = int(np.prod(shape, dtype=object)) * dtype.itemsize
            end += -(-size // _PAGE) * _PAGE
        return found, end


def numpy_dtype(name: str) -> np.dtype:
    """Return the NumPy dtype of that name; bfloat16 is known where ml_dtypes is installed."""
    if name == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)


class StoreFile:
    """A mapped file; `arrays` are views of it. One process at a time has it."""

    def __init__(self, path: Path, layout: Layout, file: int) -> None:
        self.path, self.layout, self._file = path, layout, file
        offsets, size = layout.offsets()
        self._map = mmap.mmap(file, size)
        self._header = np.frombuffer(self._map, _HEADER, 1)
        self.arrays: dict[str, Any] = {}
        for name, (shape, dtype) in layout.arrays().items():
            n = int(np.prod(shape))
            a = np.frombuffer(self._map, dtype, n, offsets[name]) if n else np.empty(0, dtype)
            self.arrays[name] = a.reshape(shape)

    @classmethod
    def create(cls, path: Path, layout: Layout, where: str) -> StoreFile:
        """Make a file of zeros with ages of -1; an existing one is left alone."""
        expected = "a name that is free (HistoryStore.open opens a store)"
        if path.exists():
            raise wrong_value(where, "path", f"the name of an existing file, {path}", expected)
        # The name appears when the file is whole.
        part = path.with_name(path.name + ".part")
        try:
            file = os.open(part, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            has = f"{path}, which cannot be written ({error.strerror})"
            raise wrong_value(where, "path", has, "a writable place") from None
        try:
            _lock(file, path, where)
        except ArgumentError:
            os.close(file)
            raise
        os.truncate(file, 0)  # what an earlier attempt may have left
        try:
            # A page without a place on the disk would kill the process that writes to it.
            os.posix_fallocate(file, 0, layout.offsets()[1])
        except OSError as error:
            os.close(file)
            part.unlink()
            has = f"{path}, for which there is no room ({error.strerror})"
            raise wrong_value(where, "path", has, "a writable place") from None
        made = cls(path, layout, file)
        made.arrays["ages"][...] = -1
        made._header["layout"] = json.dumps(asdict(layout)).encode()
        made._header["magic"] = _MAGIC
        made.flush(0)
        os.rename(part, path)
        return made

    @classmethod
    def open(cls, path: Path, where: str) -> StoreFile:
        """Map a file that was made by `create`."""
        try:
            file = os.open(path, os.O_RDWR)
        except OSError as error:
            has = f"{path}, which cannot be opened ({error.strerror})"
            raise wrong_value(where, "path", has, "a file written by HistoryStore") from None
        try:
            _lock(file, path, where)
            return cls(path, _read_layout(file, path, where), file)
        except ArgumentError:
            os.close(file)
            raise

    @property
    def step(self) -> int:
        """The step of the last flush."""
        return int(self._header["step"][0])

    @property
    def clean(self) -> bool:
        """Whether nothing was written since the last flush."""
        return bool(self._header["clean"][0])

    @property
    def same_boot(self) -> bool:
        """Whether the machine has run on since the last write, so that pages are as written."""
        return self._header["boot"][0] == _boot() != b""

    def begin_write(self) -> None:
        """Say on the disk that the file is not clean, before it is not."""
        if self._header["clean"][0]:
            self._header["boot"] = _boot()
            self._header["clean"] = 0
            self._map.flush(0, _PAGE)

    def flush(self, step: int) -> None:
        """Put all pages on the disk, then say that the file is clean."""
        self._map.flush()
        self._header["step"] = step
        self._header["clean"] = 1
        self._map.flush(0, _PAGE)

    def close(self) -> None:
        """Let go of the file; its arrays may no longer be used."""
        self.arrays, self._header = {}, np.zeros(1, _HEADER)
        with contextlib.suppress(BufferError):  # an array still held unmaps it when it goes
            self._map.close()
        fcntl.flock(self._file, fcntl.LOCK_UN)  # the map has a descriptor of its own
        os.close(self._file)


def _lock(file: int, path: Path, where: str) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        has = f"{path}, which is open elsewhere"
        raise wrong_value(where, "path", has, "a store that nobody has open") from None


def _read_layout(file: int, path: Path, where: str) -> Layout:
    expected = "a file written by HistoryStore"
    raw = os.pread(file, _PAGE, 0)
    if len(raw) < _PAGE or not raw.startswith(_MAGIC):
        raise wrong_value(where, "path", f"{path}, which is not a store", expected)
    try:
        fields: Mapping[str, Any] = json.loads(np.frombuffer(raw, _HEADER, 1)["layout"][0])
        layout = Layout(**fields)
        size = layout.offsets()[1]
    except (TypeError, ValueError) as error:
        raise wrong_value(where, "path", f"{path}, whose header is {error}", expected) from None
    has = os.fstat(file).st_size
    if has != size:
        raise wrong_value(where, "path", f"{path} of {has} bytes", f"the {size} of its header")
    return layout


def _boot() -> bytes:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_bytes().strip()
    except OSError:
        return b""
