"""The names of CuPy that edgegrad and its tests use, on simulated device memory.

What is not defined here is NumPy's function of that name, called on device arrays. NumPy is laxer
than CuPy in places, so code that does array work on the device needs a real GPU as well.
"""

from __future__ import annotations

import types
from typing import Any

import numpy as _np

from . import cuda as cuda
from .arrays import apply as _apply
from .arrays import array as array
from .arrays import asarray as asarray
from .arrays import ascontiguousarray as ascontiguousarray
from .arrays import asnumpy as asnumpy
from .arrays import copyto as copyto
from .arrays import empty as empty
from .arrays import empty_like as empty_like
from .arrays import full as full
from .arrays import full_like as full_like
from .arrays import ndarray as ndarray
from .arrays import ones as ones
from .arrays import ones_like as ones_like
from .arrays import zeros as zeros
from .arrays import zeros_like as zeros_like
from .raw import RawKernel as RawKernel
from .raw import RawModule as RawModule

__version__ = "13.6.0"  # whose interface this follows


def is_available() -> bool:
    """There is always a simulated device."""
    return True


def get_array_module(*args: Any) -> Any:
    """This module if any argument is a device array, else NumPy."""
    return cuda.this_module() if any(isinstance(a, ndarray) for a in args) else _np


def __getattr__(name: str) -> Any:
    value = getattr(_np, name)
    if isinstance(value, types.ModuleType):
        raise AttributeError(f"the stand-in for CuPy has no {name}")
    if isinstance(value, (type, _np.ufunc)) or not callable(value):
        return value  # ufuncs find the device arrays among their arguments themselves

    def call(*args: Any, **kwargs: Any) -> Any:
        return _apply(value, args, kwargs)

    return call
