"""What a cubin, a 64-bit ELF file, says of its kernels: registers, stack, shared memory."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

# Attributes of .nv.info: pairs of (symbol, value) in the common section, plain data in a kernel's.
MAX_THREADS = 0x05
MIN_STACK_SIZE = 0x12
REGISTER_COUNT = 0x2F
SIZED_FORMAT = 0x04  # the attribute carries `size` bytes; other formats carry the value itself

NOBITS = 8  # ELF section type without data in the file
SYMBOL_SIZE = 24

# From sm_90 on the size of a kernel's shared section includes what the system keeps for itself.
RESERVED_SHARED = 1024
RESERVED_SINCE = 90


@dataclass
class Resources:
    """What one kernel takes."""

    registers: int = 0
    stack: int = 0  # bytes of local memory a thread: spills, local arrays, callees
    shared: int = 0  # bytes of static shared memory a block
    max_threads: int = 1024


class Section(NamedTuple):
    name: str
    size: int
    data: bytes


def resources(cubin: bytes, arch: int) -> dict[str, Resources]:
    """Return what each kernel of `cubin` takes, by mangled name."""
    sections = {s.name: s for s in _sections(cubin)}
    kernels = {n[len(".text.") :]: Resources() for n in sections if n.startswith(".text.")}
    symbol = _symbol_names(sections)
    for attribute, data in _attributes(sections[".nv.info"].data):
        if attribute not in (MIN_STACK_SIZE, REGISTER_COUNT):
            continue
        index, value = struct.unpack("<II", data)
        kernel = kernels.get(symbol[index])  # None: a device function that was not inlined
        if kernel and attribute == MIN_STACK_SIZE:
            kernel.stack = value
        elif kernel:
            kernel.registers = value
    for name, kernel in kernels.items():
        if (shared := sections.get(f".nv.shared.{name}")) and shared.size:
            kernel.shared = shared.size - (RESERVED_SHARED if arch >= RESERVED_SINCE else 0)
        for attribute, data in _attributes(sections[f".nv.info.{name}"].data):
            if attribute == MAX_THREADS:
                x, y, z = struct.unpack("<III", data)
                kernel.max_threads = x * y * z
    return kernels


def _sections(elf: bytes) -> Iterator[Section]:
    (table,) = struct.unpack_from("<Q", elf, 0x28)
    entry_size, count, names = struct.unpack_from("<HHH", elf, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", elf, table + i * entry_size) for i in range(count)]
    for name, kind, _flags, _address, offset, size in headers:
        data = b"" if kind == NOBITS else elf[offset : offset + size]
        yield Section(_string(elf, headers[names][4] + name), size, data)


def _string(data: bytes, start: int) -> str:
    return data[start : data.index(b"\0", start)].decode()


def _symbol_names(sections: dict[str, Section]) -> list[str]:
    table, strings = sections[".symtab"].data, sections[".strtab"].data
    starts = (struct.unpack_from("<I", table, i)[0] for i in range(0, len(table), SYMBOL_SIZE))
    return [_string(strings, start) for start in starts]


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    position = 0
    while position + 4 <= len(data):
        layout, attribute, size = struct.unpack_from("<BBH", data, position)
        position += 4
        if layout == SIZED_FORMAT:
            yield attribute, data[position : position + size]
            position += size
