"""PyTorch tensors, and CuPy arrays without a copy, differentiated by torch.func."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from edgegrad.interop import view
from edgegrad.transforms.engines import Function, Pullback, framework_of, no_context
from edgegrad.transforms.trees import filled, leaves


class _Torch:
    name = "torch"

    def enter(self, array: Any, like: Any) -> Any:
        if isinstance(array, torch.Tensor):
            return array
        if framework_of(array) == "cupy":
            return torch.from_dlpack(array)
        # A copy, since read-only memory has no tensors; by its view, since bfloat16 has no NumPy.
        made = torch.from_dlpack(view("gradient", "array", np.array(array)))
        return made if like is None else made.to(like.device)

    def leave(self, array: Any, framework: str) -> Any:
        if framework == "cupy":
            import cupy  # type: ignore[import-not-found]

            return cupy.from_dlpack(array.detach())
        if framework == "jax":
            import jax

            return jax.dlpack.from_dlpack(array.detach().contiguous())
        if framework == "numpy":
            return _to_numpy(array.detach().cpu())
        return array

    def array(self, value: Any, like: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return value
        return torch.as_tensor(value, dtype=like.dtype, device=like.device)

    def vjp(self, function: Function, xs: list[Any]) -> tuple[Any, Pullback, Any]:
        rest: list[Any] = []

        def value(*arrays: Any) -> Any:
            made, extras = function(list(arrays))
            rest.append(extras)
            tensors = tuple(a for a in leaves(extras) if isinstance(a, torch.Tensor))
            return self.array(made, arrays[0]), tensors

        made, pullback, *aux = torch.func.vjp(value, *xs, has_aux=True)
        outside = iter(aux[0])
        extras = filled(
            rest[0],
            (next(outside) if isinstance(a, torch.Tensor) else a for a in leaves(rest[0])),
        )
        return made, pullback, extras

    def rows(self, pullback: Pullback, value: Any) -> list[Any]:
        n = value.numel()
        basis = torch.eye(n, dtype=value.dtype, device=value.device).reshape(n, *value.shape)
        if n == 0:
            found = pullback(torch.zeros_like(value))
            return [torch.zeros((0, *a.shape), dtype=a.dtype, device=a.device) for a in found]
        return list(torch.func.vmap(pullback)(basis))

    def ones(self, like: Any) -> Any:
        return torch.ones_like(like)

    def wide(self, arrays: Sequence[Any]) -> Any:
        return no_context()


def _to_numpy(tensor: torch.Tensor) -> np.ndarray:
    if tensor.dtype != torch.bfloat16:
        return tensor.numpy()
    return tensor.contiguous().view(torch.uint16).numpy().view(np.dtype("bfloat16"))


ENGINE = _Torch()
