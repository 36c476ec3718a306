"""JAX arrays, differentiated by JAX."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from edgegrad.transforms.engines import Function, Pullback, framework_of, no_context
from edgegrad.transforms.trees import filled, leaves


class _Jax:
    name = "jax"

    def enter(self, array: Any, like: Any) -> Any:
        framework = framework_of(array)
        if framework == "torch":
            return jax.dlpack.from_dlpack(array.detach().contiguous())
        return jax.dlpack.from_dlpack(array) if framework == "cupy" else jnp.asarray(array)

    def leave(self, array: Any, framework: str) -> Any:
        if framework == "torch":
            import torch

            return torch.from_dlpack(array)
        if framework == "cupy":
            import cupy  # type: ignore[import-not-found]

            return cupy.from_dlpack(array)
        return np.array(array) if framework == "numpy" else array

    def array(self, value: Any, like: Any) -> Any:
        return value if isinstance(value, jax.Array) else jnp.asarray(value, like.dtype)

    def vjp(self, function: Function, xs: list[Any]) -> tuple[Any, Pullback, Any]:
        rest: list[Any] = []

        def value(*arrays: Any) -> Any:
            made, extras = function(list(arrays))
            rest.append(extras)
            inside = tuple(a for a in leaves(extras) if isinstance(a, jax.Array))
            return self.array(made, arrays[0]), inside

        made, pullback, inside = jax.vjp(value, *xs, has_aux=True)
        outside = iter(inside)
        extras = filled(
            rest[0],
            (next(outside) if isinstance(a, jax.Array) else a for a in leaves(rest[0])),
        )
        return made, pullback, extras

    def rows(self, pullback: Pullback, value: Any) -> list[Any]:
        basis = jnp.eye(value.size, dtype=value.dtype).reshape(value.size, *value.shape)
        return list(jax.vmap(pullback)(basis))

    def ones(self, like: Any) -> Any:
        return jnp.ones(like.shape, like.dtype)

    def wide(self, arrays: Sequence[Any]) -> Any:
        is_wide = any(getattr(getattr(a, "dtype", None), "itemsize", 8) == 8 for a in arrays)
        return jax.enable_x64(True) if is_wide else no_context()


ENGINE = _Jax()
