"""Operators for NumPy under HIPS autograd: gradients of any order that the operators have."""

from edgegrad.autograd.functions import FUNCTIONS

globals().update(FUNCTIONS)
__all__ = list(FUNCTIONS)  # pyright: ignore[reportUnsupportedDunderAll]
