"""The part of the ELF format that tells where a module's shared arrays lie."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import NamedTuple

_SYMBOL_TABLE = 2
_THREAD_LOCAL = 6


class Symbol(NamedTuple):
    """A thread-local symbol: in a compiled kernel, a shared array."""

    name: str
    offset: int
    size: int
    defined: bool


def thread_locals(path: Path) -> list[Symbol]:
    """The thread-local symbols of a 64-bit little-endian object file or library."""
    data = path.read_bytes()
    (section_offset,) = struct.unpack_from("<Q", data, 40)
    entry_size, n_sections = struct.unpack_from("<HH", data, 58)
    sections = [
        struct.unpack_from("<IIQQQQIIQQ", data, section_offset + i * entry_size)
        for i in range(n_sections)
    ]
    found = []
    for _, kind, _, _, offset, size, link, *_ in sections:
        if kind != _SYMBOL_TABLE:
            continue
        names = sections[link][4]
        for at in range(offset, offset + size, 24):
            name, info, _, section, value, length = struct.unpack_from("<IBBHQQ", data, at)
            if info & 15 == _THREAD_LOCAL:
                end = data.index(b"\0", names + name)
                text = data[names + name : end].decode()
                found.append(Symbol(text, value, length, section != 0))
    return found
