"""The operators as functions of anybody's arrays, differentiable by whoever the arrays belong to.

NumPy arrays go to `edgegrad.autograd`, tensors to `edgegrad.torch`, JAX arrays to `edgegrad.jax`:
what is written with these functions runs under every backend of `edgegrad.gradient`.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from edgegrad.differentiation import DIFFERENTIABLE, Derivatives
from edgegrad.differentiation.functions import function_of
from edgegrad.errors import wrong_type
from edgegrad.transforms.engines import framework_of

_MODULES = {"numpy": "autograd", "torch": "torch", "jax": "jax"}


def _call(
    d: Derivatives,
    graph: Any,
    inputs: Sequence[Any],
    options: tuple[Any, ...] | None,
    *,
    wanted: tuple[str, ...],
) -> tuple[Any, ...]:
    """Make the call in the framework that the arrays belong to."""
    named = dict(zip((a.name for a in d.op.inputs), inputs, strict=True))
    found = {framework_of(a): k for k, a in named.items() if a is not None}
    if len(found) != 1 or not found.keys() <= _MODULES.keys():
        name = next((k for f, k in found.items() if f not in _MODULES), d.op.inputs[0].name)
        has = f"type {type(named[name]).__name__}"
        raise wrong_type(d.name, name, has, "arrays of NumPy, PyTorch or JAX, all of one of them")
    needed = _MODULES[next(iter(found))]
    try:
        module = importlib.import_module(f"edgegrad.{needed}")
    except ModuleNotFoundError as error:
        if error.name != needed:
            raise
        command = f"pip install 'edgegrad[{needed}]'"
        raise ImportError(f"{d.name}: arrays of this kind need {needed}: {command}") from None
    chosen = dict(zip(d.options, options, strict=True)) if options else {}
    flags = {f"return_{name}": True for name in wanted}
    on = {"graph": graph} if d.op.graphs else {}
    made = getattr(module, d.name)(**named, **on, **chosen, **flags)
    return made if wanted else (made,)


FUNCTIONS = {d.name: function_of(d, _call, "edgegrad.functional", "array") for d in DIFFERENTIABLE}
globals().update(FUNCTIONS)
__all__ = list(FUNCTIONS)  # pyright: ignore[reportUnsupportedDunderAll]
