"""Graphs as torch operators see them: a token that stands for the struct, and its sizes."""

from __future__ import annotations

import itertools
import weakref
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from edgegrad.errors import wrong_type
from edgegrad.graph import Graph
from edgegrad.graph.types import COUNTS

# Sizes that operators are told, in this order; the last says whether edge ids have a map.
SIZES = (*COUNTS, "mapped")
_NAME = "_torch"


class Reference(NamedTuple):
    """What torch operators are told of a graph.

    A compiled function takes the token for one of its inputs: it is compiled once for graphs of
    any size. The token keeps the struct alive for as long as autograd may need it.
    """

    token: Tensor  # one number, in the graph's index dtype, in host memory
    counts: tuple[int, ...]  # in the order of SIZES


class _Owner(np.ndarray):
    """The memory of a token, which holds what the token stands for."""

    struct: Graph


_structs: weakref.WeakValueDictionary[int, Graph] = weakref.WeakValueDictionary()
_numbers = itertools.count(1)


def _attach(graph: Graph) -> None:
    struct, number = graph.twin(), next(_numbers)
    owner = np.full(1, number, graph.index_dtype).view(_Owner)
    owner.struct = struct
    _structs[number] = struct
    counts = (*graph.sizes.values(), int(graph.map_csc_to_coo is not None))
    graph.attach(_NAME, Reference(torch.from_numpy(owner), counts))


# Graphs made before this module was imported get theirs when they are first used.
Graph.attachments.append(_attach)


def reference(where: str, graph: Any) -> Reference:
    """Return the reference of a graph, or of an object that has that of one."""
    found = getattr(graph, _NAME, None)
    if found is None:
        if not isinstance(graph, Graph):
            expected = "a graph of edgegrad, or a CscGraph"
            raise wrong_type(where, "graph", f"type {type(graph).__name__}", expected)
        _attach(graph)
        found = graph.__dict__[_NAME]
    return found


def struct_of(token: Tensor) -> Graph:
    """Return the graph that a token stands for."""
    return _structs[int(token)]


def maps(struct: Graph) -> tuple[Tensor, Tensor]:
    """Return, for a graph with a map of edge ids, that map and its inverse as tensors."""
    return struct.cached("torch_maps", lambda: _maps(struct))


def _maps(struct: Graph) -> tuple[Tensor, Tensor]:
    to_id: Tensor = torch.from_dlpack(struct.map_csc_to_coo)
    positions = torch.arange(len(to_id), dtype=to_id.dtype, device=to_id.device)
    return to_id, torch.empty_like(to_id).index_copy_(0, to_id.long(), positions)
