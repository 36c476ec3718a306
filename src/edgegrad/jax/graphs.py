"""Graphs as JAX sees them: a token that stands for the struct, maps of edge ids, and sizes."""

from __future__ import annotations

import itertools
import weakref
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from edgegrad.differentiation import Derivatives
from edgegrad.errors import BackendError, wrong_type, wrong_value
from edgegrad.graph import Graph
from edgegrad.graph.types import COUNTS

_NAME = "_jax"
_ALIGNMENT = 64  # what XLA asks for of memory that it takes without a copy
_INT32_MAX = 2**31 - 1


@jax.tree_util.register_pytree_node_class
@dataclass(frozen=True, eq=False)
class Reference:
    """What compiled functions are told of a graph; a graph that goes through jit comes out as one.

    The token is the memory of one number, which keeps the struct alive.
    """

    token: Any
    ids: Any  # edge id of every position, and
    positions: Any  # position of every edge id; None without a map
    kind: str
    index_dtype: str
    counts: tuple[int, ...]

    def tree_flatten(self) -> Any:
        """Take apart into arrays, and what a function is compiled for."""
        fixed = (self.kind, self.index_dtype, self.counts)
        return (self.token, self.ids, self.positions), fixed

    @classmethod
    def tree_unflatten(cls, fixed: Any, arrays: Any) -> Reference:
        """Put together again."""
        return cls(*arrays, *fixed)

    @property
    def sizes(self) -> dict[str, int]:
        """The sizes of the graph by name."""
        return dict(zip(COUNTS, self.counts, strict=False))  # none without a graph


class _Owner(np.ndarray):
    """The memory of a token, which holds what the token stands for."""

    struct: Graph


_structs: weakref.WeakValueDictionary[int, Graph] = weakref.WeakValueDictionary()
_numbers = itertools.count(1)


def _token(number: int) -> _Owner:
    memory = np.empty(2 * _ALIGNMENT, np.uint8)
    begin = -memory.ctypes.data % _ALIGNMENT
    owner = memory[begin : begin + 4].view(np.int32).view(_Owner)
    owner[0] = number
    return owner


def _attach(graph: Graph) -> None:
    struct, number = graph.twin(), next(_numbers)
    owner = _token(number)
    owner.struct = struct
    _structs[number] = struct
    counts = tuple(graph.sizes.values())
    with jax.ensure_compile_time_eval():
        token = jax.dlpack.from_dlpack(owner)
        maps = _maps(graph)
    graph.attach(_NAME, Reference(token, *maps, graph.kind, graph.index_dtype, counts))


def _maps(graph: Graph) -> tuple[Any, Any]:
    if graph.map_csc_to_coo is None:
        return None, None
    ids = np.asarray(graph.map_csc_to_coo)
    ids = ids.astype(np.int32 if len(ids) <= _INT32_MAX else np.int64)
    positions = np.empty_like(ids)
    positions[ids] = np.arange(len(ids), dtype=ids.dtype)
    return jnp.asarray(ids), jnp.asarray(positions)


def reference(d: Derivatives, graph: Any) -> Reference:
    """Return the reference of a graph, of an object that has one as `struct`, or of itself."""
    struct = getattr(graph, "struct", graph)
    kinds = " or ".join(f"{k}_int32/int64" for k in d.op.graphs)
    if not isinstance(struct, Graph | Reference):
        raise wrong_type(d.name, "graph", f"type {type(graph).__name__}", kinds)
    if struct.kind not in d.op.graphs:
        raise wrong_type(d.name, "graph", f"type {struct.kind}_{struct.index_dtype}", kinds)
    if isinstance(struct, Reference):
        return struct
    if not struct.on_host:
        raise wrong_value(d.name, "graph", f"device {struct.device}", "cpu")
    if _NAME not in struct.__dict__:
        _attach(struct)
    return struct.__dict__[_NAME]


NO_GRAPH = Reference(None, None, None, "", "", ())


def struct_of(number: int) -> Graph | None:
    """Return the graph that the number of a token stands for; None for 0."""
    if number == 0:
        return None
    try:
        return _structs[number]
    except KeyError:
        expected = "one that lives as long as what was compiled with it, or is an argument of it"
        raise BackendError(f"the graph of a compiled call is gone, expected {expected}") from None


def _flatten(graph: Graph) -> Any:
    if _NAME not in graph.__dict__:
        _attach(graph)
    return graph.__dict__[_NAME].tree_flatten()


_unflatten: Any = Reference.tree_unflatten
for _type in Graph.__subclasses__():
    jax.tree_util.register_pytree_node(_type, _flatten, _unflatten)
