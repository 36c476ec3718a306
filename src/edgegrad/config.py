"""What this installation is, what it can use, and what is missing."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import sys
from pathlib import Path

import numpy as np

from edgegrad import _host
from edgegrad.backends import cuda
from edgegrad.errors import BackendError
from edgegrad.graph.make import count

__version__ = importlib.metadata.version("edgegrad")

# Packages that make more of edgegrad work: what for, and the extra that brings them.
_OPTIONAL = {
    "scipy": ("from_scipy, to_scipy", "demo"),
    "countryinfo": ("the embedded data of `edgegrad train rgcn`", "demo"),
    "matplotlib": ("--plot", "demo"),
    "rich": ("progress bars", "demo"),
    "pymetis": ("partition by METIS", "partition"),
    "torch": ("edgegrad.torch", "torch"),
    "jax": ("edgegrad.jax", "jax"),
    "autograd": ("edgegrad.autograd, which differentiates NumPy", "autograd"),
}


# More threads than any machine has cores; OpenMP would end the process when it cannot start them.
_MOST_THREADS = 1024


def set_num_threads(n: int) -> None:
    """Use at most `n` threads in host operators; 0 for OpenMP's default (OMP_NUM_THREADS).

    Results do not depend on it.

    Raises
    ------
    ArgumentError
        If `n` is not a whole number in [0, 1024].
    """
    _host.set_num_threads(count("set_num_threads", "n", n, _MOST_THREADS))


def show_config() -> None:
    """Print versions, instruction set, threads, GPUs, cache folder, and what is missing."""
    for name, value in _facts():
        print(f"{name:<12} {value}")


def _facts() -> list[tuple[str, str]]:
    facts = [
        ("edgegrad", __version__),
        ("python", f"{sys.version.split()[0]} on {platform.system()} {platform.machine()}"),
        ("numpy", np.__version__),
        ("host", f"{_host.isa()}, {_host.num_threads()} threads (OMP_NUM_THREADS changes them)"),
        ("kernels", str(cuda.KERNELS)),
        *_cuda_facts(),
    ]
    for name, (purpose, extra) in _OPTIONAL.items():
        if importlib.util.find_spec(name):
            facts.append((name, importlib.metadata.version(name)))
        else:
            facts.append((name, f"missing ({purpose}): pip install 'edgegrad[{extra}]'"))
    return facts


def _cuda_facts() -> list[tuple[str, str]]:
    cache = os.environ.get("CUPY_CACHE_DIR", str(Path("~/.cupy/kernel_cache")))
    try:
        cp = cuda.cupy()
    except BackendError as error:
        return [("cuda", f"missing: {error}"), ("cache", cache)]
    runtime = cp.cuda.runtime
    facts = [("cupy", cp.__version__)]
    for i in range(runtime.getDeviceCount()):
        p = runtime.getDeviceProperties(i)
        arch = f"sm_{p['major']}{p['minor']}"
        facts.append(
            (f"cuda:{i}", f"{p['name'].decode()}, {arch}, {p['totalGlobalMem'] >> 30} GiB")
        )
    return [*facts, ("cache", cache)]
