"""What differentiates: HIPS autograd for NumPy, torch.func, JAX. Imported when they are needed."""

from __future__ import annotations

import importlib.util
import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

import numpy as np

from edgegrad.errors import wrong_option

# A function of a list of arrays; returns the value to differentiate, and what goes with it.
Function = Callable[[list[Any]], tuple[Any, Any]]
Pullback = Callable[[Any], Sequence[Any]]

NAMES = ("numpy", "torch", "jax")
BACKENDS = ("auto", "keep", *NAMES, "cupy")
_NEEDS = {"numpy": "autograd", "torch": "torch", "jax": "jax"}


class Engine(Protocol):
    """One framework that differentiates; its arrays are called its own."""

    name: str

    def enter(self, array: Any, like: Any) -> Any:
        """Make an array of anybody's its own, where `like`, one of its own or None, is."""
        ...

    def leave(self, array: Any, framework: str) -> Any:
        """Make one of its own that of another framework."""
        ...

    def array(self, value: Any, like: Any) -> Any:
        """Make a value of a function, such as a Python float, its own."""
        ...

    def vjp(self, function: Function, xs: list[Any]) -> tuple[Any, Pullback, Any]:
        """Return the value, the function from its gradient to those of `xs`, and the rest."""
        ...

    def rows(self, pullback: Pullback, value: Any) -> list[Any]:
        """Return what the pullback makes of every element of the value, along a first axis."""
        ...

    def ones(self, like: Any) -> Any:
        """Return ones of the shape and dtype of one of its own."""
        ...

    def wide(self, arrays: Sequence[Any]) -> AbstractContextManager[Any]:
        """Return a context in which arrays of 64 bits keep them."""
        ...


def framework_of(value: Any) -> str:
    """Return whose array a value is; "" if it is none."""
    if isinstance(value, float | np.floating | np.ndarray):
        return "numpy"
    kind = type(value)
    module = kind.__module__.partition(".")[0]
    if module == "autograd" and hasattr(value, "_trace"):
        return "numpy"
    if (torch := sys.modules.get("torch")) and isinstance(value, torch.Tensor):
        return "torch"
    if (jax := sys.modules.get("jax")) and isinstance(value, jax.Array):
        return "jax"
    return "cupy" if module == "cupy" and hasattr(value, "__cuda_array_interface__") else ""


def engine(where: str, name: str, fallback: Sequence[str] = ()) -> Engine:
    """Return an engine, or the first of `fallback` that is installed, with a warning."""
    for other in (name, *fallback):
        if other not in NAMES:
            raise wrong_option(where, "fallback", other, "of " + ", ".join(map(repr, NAMES)))
        if importlib.util.find_spec(_NEEDS[other]) is None:
            continue
        if other != name:
            text = f"{where}: {_NEEDS[name]} is not installed, {_NEEDS[other]} differentiates"
            warnings.warn(text, RuntimeWarning, stacklevel=4)
        return _load(other)
    needed = _NEEDS[name]
    raise ImportError(
        f"{where}: the {name} backend needs {needed}: pip install 'edgegrad[{needed}]'"
    )


def _load(name: str) -> Engine:
    module = importlib.import_module(f"edgegrad.transforms.engine_{name}")
    return module.ENGINE


def no_context() -> AbstractContextManager[Any]:
    """Return a context that changes nothing."""
    return nullcontext()
