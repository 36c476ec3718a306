"""Puts the runner in the place of CuPy for one test."""

from __future__ import annotations

import functools
import importlib
from typing import Any

from . import cupy_standin
from .launch import LaunchRecord, launches

# Functions that the backend caches, with caches of their own: kernels that were loaded for the
# runner must not be found by a test on a real GPU, nor the other way round.
_cached: dict[tuple[str, str], Any] = {}


def install(monkeypatch: Any, backend: str = "edgegrad.backends.cuda") -> list[LaunchRecord]:
    """Replace ``backend.cupy`` by a function that returns the stand-in, until the test ends.

    Parameters
    ----------
    monkeypatch : pytest.MonkeyPatch
        Undoes the replacement.
    backend : str
        The module that imports CuPy.

    Returns
    -------
    list of LaunchRecord
        Empty now; grows with every launch of the test.
    """
    module = importlib.import_module(backend)
    for name, value in list(vars(module).items()):
        if name != "cupy" and hasattr(value, "cache_clear"):
            own = _cached.setdefault((backend, name), functools.cache(value.__wrapped__))
            monkeypatch.setattr(module, name, own)
    monkeypatch.setattr(module, "cupy", lambda: cupy_standin)
    launches.clear()
    return launches
