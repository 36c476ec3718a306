"""NumPy arrays, differentiated by HIPS autograd."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import autograd.numpy
import numpy as np
from autograd.builtins import tuple as autograd_tuple
from autograd.core import make_vjp
from autograd.extend import Box

from edgegrad.transforms.engines import Function, Pullback, framework_of, no_context
from edgegrad.transforms.trees import mapped

anp: Any = autograd.numpy
make_tuple: Any = autograd_tuple
untyped_vjp: Any = make_vjp


class _NumPy:
    name = "numpy"

    def enter(self, array: Any, like: Any) -> Any:
        framework = framework_of(array)
        if framework == "torch":
            return array.detach().cpu().numpy()
        if framework == "cupy":
            return array.get()
        return array if isinstance(array, Box) else np.asarray(array)

    def leave(self, array: Any, framework: str) -> Any:
        if framework == "torch":
            import torch

            return torch.from_numpy(np.array(array))
        if framework == "jax":
            import jax.numpy as jnp

            return jnp.asarray(array)
        return array if isinstance(array, Box) else np.asarray(array)

    def array(self, value: Any, like: Any) -> Any:
        return value if isinstance(value, Box) else np.asarray(value)

    def vjp(self, function: Function, xs: list[Any]) -> tuple[Any, Pullback, Any]:
        rest: list[Any] = []

        def value(packed: Any) -> Any:
            made, extras = function([packed[i] for i in range(len(xs))])
            # What is not differentiated leaves this trace; an outer one it may stay in.
            rest.append(mapped(lambda a: _outside(a, packed), extras))
            return made

        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Output seems independent of input")
            pullback, made = untyped_vjp(value, make_tuple(xs))

        def gradients(g: Any) -> list[Any]:
            found = pullback(g)
            return [_typed(found[i], x) for i, x in enumerate(xs)]

        return self.array(made, None), gradients, rest[0]

    def rows(self, pullback: Pullback, value: Any) -> list[Any]:
        basis: Any = np.eye(value.size, dtype=value.dtype).reshape(value.size, *value.shape)
        found = [pullback(e) for e in basis]
        like = pullback(np.zeros(value.shape, value.dtype))
        return [
            anp.stack([row[i] for row in found]) if found else np.zeros((0, *np.shape(x)), x.dtype)
            for i, x in enumerate(like)
        ]

    def ones(self, like: Any) -> Any:
        return np.ones(like.shape, like.dtype)

    def wide(self, arrays: Sequence[Any]) -> Any:
        return no_context()


def _outside(value: Any, start: Any) -> Any:
    mine = isinstance(value, Box) and isinstance(start, Box) and value._trace == start._trace
    return value._value if mine else value


def _typed(gradient: Any, x: Any) -> Any:
    """Return a gradient in the dtype of its variable: wider constants widen it."""
    a: Any = gradient if isinstance(gradient, Box) else np.asarray(gradient)
    return a if a.dtype == x.dtype else a.astype(x.dtype)


ENGINE = _NumPy()
