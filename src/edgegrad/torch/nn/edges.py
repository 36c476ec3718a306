"""What the layers make of edges: a graph, with loops where a layer adds them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from edgegrad.errors import wrong_type, wrong_value
from edgegrad.graph import Graph, from_coo
from edgegrad.torch.functions import FUNCTIONS
from edgegrad.torch.graphs import SIZES, reference

# What was made of a tensor of edges last, with what it was made for.
_made = WeakTensorKeyDictionary()


@dataclass(frozen=True)
class Edges:
    """A graph, and how its edges came from those given."""

    graph: Graph
    edge_index: Any  # with the loops that were added; the graph itself if one was given
    kept: Tensor | None = None  # the edges given that are still there; None: all
    n_loops: int = 0  # loops added after them, of node 0, 1, and so on

    @property
    def n(self) -> int:
        """Number of edges."""
        return reference("edges", self.graph).counts[SIZES.index("n_indices")]

    def attributes(self, attr: Tensor, fill: float | Tensor | str, inner: Graph | None) -> Tensor:
        """Return edge features with those of the added loops, as `fill` says.

        `fill` is the features themselves, or how those of the edges that enter a node are reduced
        ("mean", "sum", "add", "min", "max") in `inner`, the graph without the loops.
        """
        attr = attr if self.kept is None else attr[self.kept]
        if not self.n_loops:
            return attr
        if isinstance(fill, str):
            op = "sum" if fill == "add" else fill
            loops = FUNCTIONS["agg_simple_e2n"](attr, inner, op)[: self.n_loops]
        elif isinstance(fill, Tensor):
            loops = fill.to(attr).expand(self.n_loops, *attr.shape[1:])
        else:
            loops = attr.new_full((self.n_loops, *attr.shape[1:]), float(fill))
        return torch.cat((attr, loops))


def edges_of(
    where: str,
    edge_index: Any,
    n_src: int,
    n_dst: int,
    loops: str = "",
    edge_type: Tensor | None = None,
    n_edge_types: int | None = None,
) -> Edges:
    """Return the edges of a layer.

    Parameters
    ----------
    where
        Name of the layer.
    edge_index : Tensor (2, n) of sources and destinations, or a graph of edgegrad
        The graph of a tensor is kept for as long as the tensor lives unchanged.
    n_src, n_dst
        Numbers of nodes.
    loops
        "": none are added; "new": one for every node, in place of those that are there;
        "missing": one for every node that has none.
    edge_type, n_edge_types
        Types of the edges, for a graph with types.
    """
    struct = getattr(edge_index, "struct", edge_index)
    if isinstance(struct, Graph):
        return _given(where, struct, n_src, n_dst, loops)
    if not isinstance(edge_index, Tensor):
        has = f"type {type(edge_index).__name__}"
        raise wrong_type(where, "edge_index", has, "a tensor (2, n) or a graph of edgegrad")
    if edge_index.dim() != 2 or edge_index.shape[0] != 2:
        raise wrong_value(where, "edge_index", f"shape {tuple(edge_index.shape)}", "(2, n)")
    version = None if edge_type is None else (id(edge_type), edge_type._version)
    key = (edge_index._version, n_src, n_dst, loops, version, n_edge_types)
    known = _made.get(edge_index)
    if known is None or known[0] != key:
        made = _make(edge_index, n_src, n_dst, loops, edge_type, n_edge_types)
        # The types are kept too: while they are, no other tensor has their id.
        known = key, made, edge_type
        _made[edge_index] = known
    return known[1]


def _given(where: str, graph: Graph, n_src: int, n_dst: int, loops: str) -> Edges:
    if loops:
        expected = "a tensor (2, n), since loops are to be added (or add_self_loops=False)"
        raise wrong_type(where, "edge_index", "a graph", expected)
    # Of the reference: tracers cannot look into the struct.
    sources, destinations = reference(where, graph).counts[:2]
    if (sources, destinations) != (n_src, n_dst):
        has = f"a graph of {sources} sources and {destinations} destinations"
        raise wrong_value(where, "edge_index", has, f"features of {n_src} and {n_dst}")
    return Edges(graph, graph)


def _make(
    edge_index: Tensor,
    n_src: int,
    n_dst: int,
    loops: str,
    types: Tensor | None,
    n_types: int | None,
) -> Edges:
    kept, n_loops = None, min(n_src, n_dst) if loops else 0
    if loops:
        kept = edge_index[0] != edge_index[1]
        added = torch.arange(n_loops, dtype=edge_index.dtype, device=edge_index.device)
        edge_index = torch.cat((edge_index[:, kept], added.expand(2, -1)), dim=1)
    src, dst = (edge_index[i].contiguous() for i in range(2))
    types = None if types is None else types.to(torch.int32).contiguous()
    graph = from_coo(src, dst, n_src, n_dst, edge_types=types, n_edge_types=n_types, bipartite=True)
    return Edges(graph, edge_index, kept, n_loops)


def loop_weights(edge_index: Tensor, weight: Tensor, n: int, fill: float) -> Tensor:
    """Return weights of loops: that of a loop that is there, the last of several, else `fill`."""
    at = (edge_index[0] == edge_index[1]).nonzero()[:, 0]
    return weight.new_full((n,), fill).index_put((edge_index[0, at],), weight[at])
