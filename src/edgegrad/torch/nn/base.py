"""What the layers share: PyG's arguments of every layer, features of both sides, parameters."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from edgegrad.errors import wrong_option, wrong_type

Features = Tensor | tuple[Tensor | None, Tensor | None]


class Layer(nn.Module):
    """A layer with the arguments, the parameters and the numbers of PyG's of the same name.

    `edge_index` is a tensor (2, n) of sources and destinations, or a graph of edgegrad. The graph
    of a tensor is made in the first call with it and kept while the tensor lives unchanged; in a
    function to be compiled give the graph, made outside.
    """

    def __init__(self, aggr: str = "add", flow: str = "source_to_target", **others: Any) -> None:
        super().__init__()
        where = type(self).__name__
        if flow != "source_to_target":
            raise wrong_option(where, "flow", flow, "'source_to_target'")
        for name in others:
            raise TypeError(f"{where}: unexpected argument `{name}`")
        if aggr not in self._reductions:
            raise wrong_option(where, "aggr", aggr, " or ".join(map(repr, self._reductions)))
        self.aggr = "sum" if aggr == "add" else aggr

    _reductions: tuple[str, ...] = ("add", "sum")

    def reset_parameters(self) -> None:
        """Draw all parameters anew."""
        for child in self.children():
            child.reset_parameters()  # type: ignore[operator]

    def _parameter(self, name: str, *shape: int, given: bool = True) -> None:
        """Register a parameter, or None in its place."""
        made = nn.Parameter(torch.empty(shape)) if given else None
        self.register_parameter(name, made)


class Linear(nn.Linear):
    """A linear map whose weight is drawn as Glorot & Bengio (2010) do, its bias 0."""

    def reset_parameters(self) -> None:
        """Draw the weight anew."""
        glorot(self.weight)
        zeros(self.bias)


def glorot(a: Tensor | None) -> None:
    """Fill a tensor with uniform numbers within the root of 6 / (its last two sizes' sum)."""
    if a is not None:
        bound = math.sqrt(6.0 / (a.shape[-2] + a.shape[-1]))
        nn.init.uniform_(a, -bound, bound)


def zeros(a: Tensor | None) -> None:
    """Fill a tensor with zeros."""
    if a is not None:
        nn.init.zeros_(a)


def pair(channels: int | tuple[int, int]) -> tuple[int, int]:
    """Return the widths of both sides."""
    return (channels, channels) if isinstance(channels, int) else (channels[0], channels[1])


def sides(where: str, x: Any) -> tuple[Tensor, Tensor | None]:
    """Return the features of sources and of destinations, the same for one tensor."""
    if isinstance(x, Tensor):
        return x, x
    if isinstance(x, (tuple, list)) and len(x) == 2 and isinstance(x[0], Tensor):
        return x[0], x[1]
    raise wrong_type(where, "x", f"type {type(x).__name__}", "a tensor or a pair of them")


def dropout_mask(p: float, training: bool, heads: int, edges: int, like: Tensor) -> Tensor | None:
    """Draw the factors of dropout, (heads, edges): 0 or 1 / (1 - p); None where nothing drops."""
    if not training or p == 0:
        return None
    dtype = torch.float64 if like.dtype == torch.float64 else torch.float32
    ones = torch.ones(heads, edges, dtype=dtype, device=like.device)
    return nn.functional.dropout(ones, p)
