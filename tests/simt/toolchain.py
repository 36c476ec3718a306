"""Calls of the host compiler: the runtime, the precompiled shim and the kernels."""

from __future__ import annotations

import functools
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from . import cache, elf
from .errors import CompileError

HERE = Path(__file__).resolve().parent
INCLUDE = HERE / "include"
MAX_DYNAMIC_SHARED = 227 << 10  # bytes per block on sm_90

# Marks dynamic shared memory in a module's symbol table.
DYNAMIC_SHARED = "simt_dynamic_shared"

_BASE_FLAGS = (
    "-std=c++17",
    "-fPIC",
    "-w",
    "-g1",
    "-fno-exceptions",
    "-fno-rtti",
    "-fno-strict-aliasing",
    "-fwrapv",
    # The fused multiply-adds that NVRTC forms, where the machine has the instruction.
    "-ffp-contract=fast",
    # Without these the dynamic linker merges the statics of templates of different modules.
    "-fvisibility=hidden",
    "-fno-gnu-unique",
    # `extern __shared__` is not initialised dynamically, so nothing is called to access it.
    "-fno-extern-tls-init",
    "-fno-tree-vectorize",
)
_FAST_FLAGS = ("-O2",)
_CHECK_FLAGS = (
    "-O1",
    "-DSIMT_CHECK",
    # Makes the compiler form the same fused multiply-adds at -O1 as NVRTC does.
    "-fexpensive-optimizations",
    "-fno-omit-frame-pointer",
    # Keeps the copy of a vector one access of its full size.
    "-fno-tree-sra",
    "-fsanitize=thread",
    "-fsanitize=alignment,bounds,integer-divide-by-zero,null,shift,unreachable",
)
_CHECK_FLAGS_SINCE = {
    11: (
        "--param=tsan-instrument-func-entry-exit=0",
        "--param=tsan-distinguish-volatile=1",
    ),
    12: ("-ftrivial-auto-var-init=pattern",),
}


def compiler() -> str:
    """The C++ compiler; ``EDGEGRAD_SIMT_CXX`` overrides g++."""
    return os.environ.get("EDGEGRAD_SIMT_CXX", "g++")


def call(*command: object, stdin: str = "") -> str:
    """Run a tool and return what it prints."""
    words = [str(word) for word in command]
    try:
        done = subprocess.run(words, input=stdin, capture_output=True, text=True)
    except FileNotFoundError:
        raise CompileError(f"{words[0]} is not installed (apt install g++)") from None
    if done.returncode:
        raise CompileError(f"{' '.join(words)}\n{done.stderr[:6000]}")
    return done.stdout


@functools.cache
def _version() -> int:
    return int(call(compiler(), "-dumpversion").split(".")[0])


@functools.cache
def _machine_flags() -> tuple[str, ...]:
    if platform.machine() != "x86_64" or " fma" not in Path("/proc/cpuinfo").read_text():
        return ()
    return ("-mfma",)


def flags(check: bool) -> tuple[str, ...]:
    """Compiler flags of the instrumented or of the fast build."""
    if not check:
        return (*_BASE_FLAGS, *_machine_flags(), *_FAST_FLAGS)
    recent = [
        f for since, group in _CHECK_FLAGS_SINCE.items() if _version() >= since for f in group
    ]
    return (*_BASE_FLAGS, *_machine_flags(), *_CHECK_FLAGS, *recent)


def build_runtime() -> Path:
    """The shared library that executes launches; one translation unit, so that hooks inline."""
    sources = sorted((HERE / "runtime").glob("*.cpp"))
    headers = sorted((HERE / "runtime").glob("*.h"))
    contents = [path.read_bytes() for path in (*sources, *headers, INCLUDE / "simt_abi.h")]

    def build(scratch: Path) -> Path:
        unit = scratch / "runtime.cpp"
        unit.write_text("".join(f'#include "{source}"\n' for source in sources))
        library = scratch / "libsimt.so"
        options = ("-std=c++17", "-O2", "-g1", "-fPIC", "-shared", "-U_FORTIFY_SOURCE")
        call(compiler(), *options, unit, "-o", library, "-lrt", "-pthread")
        return library

    return cache.cached(f"libsimt-{cache.key(compiler(), *contents)}.so", build)


def _build_shim(options: Sequence[str]) -> Path:
    """The precompiled shim, which saves most of the time a small kernel takes to compile."""
    headers = [path.read_bytes() for path in sorted(INCLUDE.glob("*.h"))]

    def build(scratch: Path) -> Path:
        made = scratch / "shim"
        shutil.copytree(INCLUDE, made)
        header = made / "simt_cuda.h"
        call(compiler(), *options, "-x", "c++-header", header, "-o", f"{header}.gch")
        return made

    return cache.cached(f"shim-{cache.key(compiler(), *options, *headers)}", build)


def translate_options(options: Sequence[str]) -> list[str]:
    """The options of NVRTC that mean something here: definitions, include folders, architecture."""
    translated = []
    for option in options:
        if option.startswith(("-D", "-I", "-U")):
            translated.append(option)
        elif match := re.search(r"-arch(?:itecture)?=(?:sm|compute)_(\d+)", option):
            translated.append(f"-D__CUDA_ARCH__={match[1]}0")
        elif not option.startswith(("-std=", "--std=")):
            raise ValueError(f"the CPU runner does not know the option {option!r}")
    return translated


def build_module(code: str, options: Sequence[str], check: bool) -> Path:
    """Compile CUDA source `code`, which ends in its table of kernels, to a shared library."""
    user = translate_options(options)
    arch = [o for o in user if o.startswith("-D__CUDA_ARCH__")]  # the shim looks at it
    shim = _build_shim((*flags(check), *arch))
    include_dirs = [Path(o[2:]) for o in user if o.startswith("-I")]
    headers = [h.read_bytes() for h in cache.included_files(code, include_dirs)]

    def build(scratch: Path) -> Path:
        source, compiled, library = (
            scratch / name for name in ("kernel.cu", "kernel.o", "kernel.so")
        )
        source.write_text(code)
        options = (*flags(check), *user, "-include", shim / "simt_cuda.h")
        call(compiler(), *options, "-x", "c++", "-c", source, "-o", compiled)
        dynamic = _build_dynamic_shared(compiled, scratch)
        # What is left undefined is the runtime's, which is loaded before.
        call(compiler(), "-shared", "-Wl,-Bsymbolic", compiled, *dynamic, "-o", library)
        return library

    return cache.cached(f"kernel-{cache.key(shim.name, code, *user, *headers)}.so", build)


def _build_dynamic_shared(compiled: Path, scratch: Path) -> list[Path]:
    """Define what the source declares `extern __shared__`.

    CUDA gives all such names one address, and so does this: one block of thread-local memory.
    """
    undefined = {symbol.name for symbol in elf.thread_locals(compiled) if not symbol.defined}
    if not undefined:
        return []
    names = [DYNAMIC_SHARED, *sorted(undefined)]
    lines = ['.section .tbss,"awT",@nobits', ".balign 1024"]
    for name in names:
        lines += [f".globl {name}", f".hidden {name}", f".type {name},@object"]
        lines += [f".size {name},{MAX_DYNAMIC_SHARED}", f"{name}:"]
    assembly = scratch / "dynamic.s"
    assembly.write_text("\n".join([*lines, f".zero {MAX_DYNAMIC_SHARED}", ""]))
    call(compiler(), "-c", assembly, "-o", assembly.with_suffix(".o"))
    return [assembly.with_suffix(".o")]
