"""The native function behind compiled calls: built once for a version of jaxlib, then cached."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sysconfig
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax

TARGET = "edgegrad_call"
_SOURCE = Path(__file__).with_name("handler.cpp")
_FLAGS = ("-O2", "-std=c++17", "-shared", "-fPIC", "-fvisibility=hidden")
_COMPILERS = ("c++", "g++", "clang++")


class _MissingError(Exception):
    """What the fast path lacks, and what mends it."""


@functools.cache
def registered(run: Callable[..., None]) -> bool:
    """Whether compiled functions can call `run` directly; if not, a notice says why, once.

    Parameters
    ----------
    run
        Takes the attribute ``kernel``, the token, arrays to read and those to write.
    """
    try:
        module = _load(_built())
    except _MissingError as missing:
        text = f"edgegrad.jax calls go through jax.pure_callback, which is slow: {missing}"
        warnings.warn(text, RuntimeWarning, stacklevel=2)
        return False
    module.set_runner(run)
    jax.ffi.register_ffi_target(TARGET, module.entry, platform="cpu")
    return True


def cache_folder() -> Path:
    """Return where what is built stays: EDGEGRAD_CACHE_DIR, else in the user's cache folder."""
    if chosen := os.environ.get("EDGEGRAD_CACHE_DIR"):
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "edgegrad"


def _built() -> Path:
    """Return the module, building it if no cached one is of this source, Python and jaxlib."""
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    parts = (_SOURCE.read_bytes(), importlib.metadata.version("jaxlib").encode(), suffix.encode())
    digest = hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]
    path = cache_folder() / f"jax-{digest}" / f"handler{suffix}"
    if not path.exists():
        _build(path)
    return path


def _build(path: Path) -> None:
    chosen = (
        os.environ.get("CXX", "").split()
        or [found for found in map(shutil.which, _COMPILERS) if found][:1]
    )
    if not chosen:
        raise _MissingError("install a C++ compiler (g++ or clang++), or set CXX to one")
    headers = sysconfig.get_path("include")
    if not Path(headers, "Python.h").exists():
        raise _MissingError(
            f"install the headers of Python (python3-dev); {headers} has no Python.h"
        )
    include = [f"-I{headers}", f"-I{jax.ffi.include_dir()}"]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Others may build it at the same time: it appears whole, or not at all.
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            made = Path(folder) / path.name
            command = [*chosen, *_FLAGS, *include, str(_SOURCE), "-o", str(made)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                last = (done.stderr.strip().splitlines() or ["no message"])[-1]
                raise _MissingError(f"`{chosen[0]}` cannot build {_SOURCE.name}: {last}")
            made.replace(path)
    except OSError as error:
        told = f"{error.strerror}: {error.filename}"
        raise _MissingError(
            f"set EDGEGRAD_CACHE_DIR to a folder that can be written ({told})"
        ) from None


def _load(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location("edgegrad.jax.handler", path)
    if spec is None or spec.loader is None:
        raise _MissingError(f"{path} is no Python module; remove it")
    try:
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    except ImportError as error:
        raise _MissingError(f"remove {path}, which cannot be loaded ({error})") from None
    return module
