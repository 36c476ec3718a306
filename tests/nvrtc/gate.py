"""What every kernel is held to, whatever its budget says."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from . import cubin, nvrtc, ptx
from .occupancy import occupancy

WIDE = ptx.WIDE_BITS // 8
_STORAGE = {"float": 4, "double": 8, "half_t": 2, "bfloat16_t": 2}
_SPILLS = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")


@dataclass(frozen=True)
class Row:
    """The measured facts of one kernel on one architecture that the budget file keeps."""

    registers: int
    spills: int  # bytes stored and loaded
    shared: int  # bytes, static
    loads128: int  # places that load 16 bytes or more from global memory
    stores128: int
    occupancy: int  # percent, for blocks of the launch bound and static shared memory


@dataclass(frozen=True)
class Measured:
    """One kernel on one architecture."""

    kernel: str
    row: Row
    stack: int
    float_atomics: list[str]
    split_stores: list[str]

    def faults(self) -> list[str]:
        """Say what is wrong with the kernel, in one line each."""
        found = []
        if self.row.spills:
            found.append(f"spills {self.row.spills} bytes")
        elif self.stack:
            found.append(f"keeps {self.stack} bytes in local memory")
        if self.float_atomics:
            found.append(f"adds floats atomically: {', '.join(self.float_atomics)}")
        if access_bytes(self.kernel) >= WIDE and not self.row.loads128:
            found.append(f"is made for {WIDE}-byte accesses and loads nothing that wide")
        if access_bytes(self.kernel) >= WIDE and self.split_stores:
            found.append(f"splits {len(self.split_stores)} {WIDE}-byte stores into narrow ones")
        return [f"{self.kernel} {fault}" for fault in found]


def access_bytes(kernel: str) -> int:
    """Return the bytes an access of `kernel` moves, 0 where its name does not tell.

    By the order of template parameters, `<T, ..., VEC, ...>`: T comes first, and VEC is the first
    parameter that is a number.
    """
    first, *others = (x.strip() for x in kernel.partition("<")[2].rstrip(" >").split(","))
    vec = next((int(x) for x in others if x.isdigit()), 0)
    return _STORAGE.get(first.rpartition("::")[2], 0) * vec


def measure(
    code: str, name: str, kernels: Iterable[str], arch: int, options: Iterable[str] = ()
) -> tuple[list[Measured], list[str]]:
    """Compile `kernels` of `code`; return what they measure and what the compiler warned of."""
    compiled = nvrtc.compile_program(code, name, kernels, arch, options)
    taken = cubin.resources(compiled.cubin, arch)
    bodies, spills = ptx.kernels(compiled.ptx), _spills(compiled.log)
    found = []
    for kernel, symbol in compiled.symbols.items():
        use, body = taken[symbol], bodies[symbol]
        row = Row(
            registers=use.registers,
            spills=spills[symbol],
            shared=use.shared,
            loads128=ptx.count_wide(body, "ld"),
            stores128=ptx.count_wide(body, "st"),
            occupancy=occupancy(arch, use.max_threads, use.registers, use.shared),
        )
        atomics, split = ptx.float_atomics(body), ptx.split_stores(body)
        found.append(Measured(kernel, row, use.stack, atomics, split))
    return found, compiled.warnings


def _spills(log: str) -> dict[str, int]:
    """Return the spilled bytes of each kernel; ptxas lists a kernel's callees below it."""
    _, *parts = re.split(r"Compiling entry function '([^']+)'", log)
    reports = zip(parts[::2], parts[1::2], strict=True)
    return {
        kernel: sum(int(a) + int(b) for a, b in _SPILLS.findall(report))
        for kernel, report in reports
    }
