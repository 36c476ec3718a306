"""A compiled and loaded CUDA source: its kernels, its shared arrays, its source lines."""

from __future__ import annotations

import ctypes as c
import functools
import re
from dataclasses import dataclass, field
from pathlib import Path

from . import elf, source, toolchain
from .runtime_library import Kernel, library

_PROBE = "simt_probe_variable"
_TABLE = """
#line 1 "table of kernels"
extern "C" {{
thread_local char simt_probe_variable;
#define SIMT_EXPORT __attribute__((visibility("default")))
SIMT_EXPORT void* simt_probe() {{ return &simt_probe_variable; }}
SIMT_EXPORT extern const simt_kernel simt_kernels[] = {{ {kernels} }};
SIMT_EXPORT extern const int simt_n_kernels = {n_kernels};
}}
"""


@dataclass(frozen=True)
class Parameter:
    """One parameter of a kernel; `kind` as in include/simt_abi.h."""

    name: str
    type: str
    size: int
    element_size: int
    is_pointer: bool
    is_const: bool
    kind: str


@dataclass(frozen=True)
class Entry:
    """A kernel that can be launched."""

    thunk: int
    parameters: tuple[Parameter, ...]


@dataclass
class Module:
    """One build, instrumented or fast, of one source with its options and instantiations."""

    path: Path
    entries: dict[str, Entry]
    code: tuple[int, int]  # the addresses it is loaded at
    shared_bytes: int
    shared_arrays: list[elf.Symbol]
    dynamic_shared: elf.Symbol | None
    dll: c.CDLL
    _probe_offset: int
    _lines: dict[int, str] = field(default_factory=dict)

    def shared_address(self) -> int:
        """Where the shared memory of this module lies for the calling thread."""
        return self.dll.simt_probe() - self._probe_offset

    def line_of(self, address: int) -> str:
        """The source line of an instruction, with the calls it was inlined through."""
        lo, hi = self.code
        if not lo <= address < hi:
            return ""
        if address not in self._lines:
            offset = hex(address - lo - 1)  # addresses are those of the next instruction
            text = toolchain.call("addr2line", "-Cips", "-e", self.path, offset)
            text = re.sub(r" \(discriminator \d+\)", "", text.strip())
            self._lines[address] = re.sub(r"\n \(inlined by\)", " <-", text)
        return self._lines[address]


def _parameters(code: str, name: str, kernel: Kernel) -> tuple[Parameter, ...]:
    names = source.parameter_names(code, name)
    if len(names) != kernel.n_parameters:
        names = [f"argument {i}" for i in range(kernel.n_parameters)]
    described = []
    for i, parameter_name in enumerate(names):
        p = kernel.parameters[i]
        match = re.search(r"T = (.*)\]$", p.type.decode())
        text = match[1] if match else p.type.decode()
        layout = (p.size, p.element_size, p.is_pointer, p.is_const, p.kind.decode())
        described.append(Parameter(parameter_name, text, *layout))
    return tuple(described)


def _entries(dll: c.CDLL, code: str) -> dict[str, Entry]:
    count = c.c_int.in_dll(dll, "simt_n_kernels").value
    kernels = (Kernel * count).in_dll(dll, "simt_kernels")
    return {
        (name := kernel.name.decode()): Entry(kernel.thunk, _parameters(code, name, kernel))
        for kernel in kernels
    }


@functools.cache
def load(code: str, options: tuple[str, ...], expressions: tuple[str, ...], check: bool) -> Module:
    """Compile, unless the cache has it, and load."""
    names = dict.fromkeys([*expressions, *source.plain_kernels(code)])
    kernels = ", ".join(f'SIMT_KERNEL("{name}", {name})' for name in names)
    table = _TABLE.format(kernels=kernels, n_kernels=len(names))
    path = toolchain.build_module(f'#line 1 "kernel.cu"\n{code}{table}', options, check)
    runtime = library()  # before the module, which links to it
    dll = c.CDLL(str(path))
    dll.simt_probe.restype = c.c_size_t
    lo, hi = c.c_size_t(), c.c_size_t()
    function = c.cast(dll.simt_probe, c.c_void_p).value
    runtime.simt_module_extent(function, c.byref(lo), c.byref(hi))
    symbols = {symbol.name: symbol for symbol in elf.thread_locals(path)}
    probe = symbols.pop(_PROBE)
    dynamic = symbols.pop(toolchain.DYNAMIC_SHARED, None)
    arrays = [s for s in symbols.values() if s.size and (not dynamic or s.offset != dynamic.offset)]
    end = max(s.offset + s.size for s in (probe, *arrays, *([dynamic] if dynamic else [])))
    extent = (lo.value, hi.value)
    entries = _entries(dll, code)
    return Module(path, entries, extent, end, arrays, dynamic, dll, probe.offset)


def demangle(text: str) -> str:
    """Replace the compiler's names of shared arrays by readable ones."""
    if "_Z" not in text:
        return text
    return toolchain.call("c++filt", stdin=text).strip()
