"""The functions of arrays of whoever the arrays belong to."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from edgegrad.errors import wrong_type
from edgegrad.transforms.engines import framework_of

_MODULES = {"numpy": "numpy", "torch": "torch", "jax": "jax.numpy", "cupy": "cupy"}


def array_namespace(*arrays: Any) -> Any:
    """Return the module with the functions for these arrays, as ``xp`` in ``xp.exp(x)``.

    Parameters
    ----------
    *arrays
        Arrays of one framework. For NumPy arrays that are being differentiated it is
        ``autograd.numpy``, so that a function written with the module runs under every backend of
        `gradient`.

    Raises
    ------
    ArgumentError
        If they are not arrays of one framework.
    """
    found = {framework_of(a) for a in arrays}
    if len(found) != 1 or "" in found:
        names = " and ".join(type(a).__name__ for a in arrays) or "nothing"
        raise wrong_type("array_namespace", "arrays", f"types {names}", "arrays of one framework")
    name = found.pop()
    if name == "numpy" and not all(isinstance(a, float | np.generic | np.ndarray) for a in arrays):
        return importlib.import_module("autograd.numpy")
    return importlib.import_module(_MODULES[name])
