"""NVRTC through ctypes: CUDA C++ in; PTX, cubin and the compiler's log out.

Needs the library alone, no driver and no GPU. NVRTC holds one lock per process while it
compiles, so only processes make it faster, never threads.
"""

from __future__ import annotations

import ctypes
import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import metadata

WHEEL = "nvidia-cuda-nvrtc-cu12"
VERSION = "12.9.86"  # of the wheel; registers differ from release to release
ARCHITECTURES = (70, 80, 90, 100, 120)

_WARNING = re.compile(r"\bwarning\s*(?:#\S+)?:")


class CompileError(RuntimeError):
    """NVRTC refused a program; the message is its log."""


@dataclass(frozen=True)
class Compiled:
    """One program for one architecture."""

    ptx: str
    cubin: bytes
    log: str
    symbols: dict[str, str]  # name expression -> mangled name

    @property
    def warnings(self) -> list[str]:
        """Lines of the log that warn of the source, not of the age of an architecture."""
        lines = (x.strip() for x in self.log.splitlines() if _WARNING.search(x))
        return [x for x in lines if "Architectures prior to" not in x]


def version() -> str | None:
    """Return the version of the installed wheel, None without one."""
    try:
        return metadata.version(WHEEL)
    except metadata.PackageNotFoundError:
        return None


def missing() -> str | None:
    """Say what is missing to compile here, None if nothing is."""
    if version() is None:
        return f"NVRTC is not installed: pip install {WHEEL}=={VERSION}"
    return None


@functools.cache
def _library() -> ctypes.CDLL:
    files = metadata.files(WHEEL) or []
    path = next(f for f in files if f.name.startswith("libnvrtc.so"))
    library = ctypes.CDLL(str(path.locate()))
    library.nvrtcGetErrorString.restype = ctypes.c_char_p
    return library


def _call(function: str, *args: object) -> None:
    code = getattr(_library(), function)(*args)
    if code:
        raise CompileError(f"{function}: {_library().nvrtcGetErrorString(code).decode()}")


def _fetch(what: str, program: ctypes.c_void_p) -> bytes:
    size = ctypes.c_size_t()
    _call(f"nvrtcGet{what}Size", program, ctypes.byref(size))
    buffer = ctypes.create_string_buffer(size.value)
    _call(f"nvrtcGet{what}", program, buffer)
    return buffer.raw


def _fetch_text(what: str, program: ctypes.c_void_p) -> str:
    return _fetch(what, program).rstrip(b"\0").decode()


@functools.cache
def listed() -> tuple[int, ...]:
    """Return the architectures that the installed NVRTC compiles for."""
    count = ctypes.c_int()
    _call("nvrtcGetNumSupportedArchs", ctypes.byref(count))
    archs = (ctypes.c_int * count.value)()
    _call("nvrtcGetSupportedArchs", archs)
    return tuple(archs)


def compile_program(
    code: str, name: str, kernels: Iterable[str], arch: int, options: Iterable[str] = ()
) -> Compiled:
    """Compile `kernels`, name expressions of `code`, into one program for sm_`arch`."""
    # -ftz is what CuPy adds to every program; -v puts ptxas's report of spills into the log.
    flags = [*options, "-ftz=true", f"--gpu-architecture=sm_{arch}", "--ptxas-options=-v"]
    kernels = list(kernels)
    program = ctypes.c_void_p()
    _call("nvrtcCreateProgram", ctypes.byref(program), code.encode(), name.encode(), 0, None, None)
    try:
        for kernel in kernels:
            _call("nvrtcAddNameExpression", program, kernel.encode())
        argv = (ctypes.c_char_p * len(flags))(*(x.encode() for x in flags))
        try:
            _call("nvrtcCompileProgram", program, len(flags), argv)
        except CompileError as error:
            log = _fetch_text("ProgramLog", program)
            raise CompileError(f"{name} for sm_{arch} with {flags}: {error}\n{log}") from None
        return Compiled(
            ptx=_fetch_text("PTX", program),
            cubin=_fetch("CUBIN", program),
            log=_fetch_text("ProgramLog", program),
            symbols={kernel: _lowered(program, kernel) for kernel in kernels},
        )
    finally:
        _call("nvrtcDestroyProgram", ctypes.byref(program))


def _lowered(program: ctypes.c_void_p, kernel: str) -> str:
    symbol = ctypes.c_char_p()
    _call("nvrtcGetLoweredName", program, kernel.encode(), ctypes.byref(symbol))
    assert symbol.value is not None
    return symbol.value.decode()
