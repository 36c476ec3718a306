"""Operators for NumPy under HIPS autograd: gradients of any order that the operators have."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from edgegrad.autograd.functions import FUNCTIONS

if TYPE_CHECKING:  # what is made from the registrations

    def __getattr__(name: str) -> Callable[..., Any]: ...


globals().update(FUNCTIONS)
__all__ = list(FUNCTIONS)  # pyright: ignore[reportUnsupportedDunderAll]
