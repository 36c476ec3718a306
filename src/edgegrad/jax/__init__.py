"""Operators for JAX: jit, grad of any order that the operators have, vmap.

A graph may be closed over, or be an argument of a jitted function, which is then compiled once for
all graphs of its kind and sizes. Derivatives are those of reverse mode: forward mode (`jax.jvp`,
`jax.jacfwd`) is an error of JAX's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from edgegrad.jax.functions import FUNCTIONS

if TYPE_CHECKING:  # what is made from the registrations

    def __getattr__(name: str) -> Callable[..., Any]: ...


globals().update(FUNCTIONS)
__all__ = list(FUNCTIONS)  # pyright: ignore[reportUnsupportedDunderAll]
