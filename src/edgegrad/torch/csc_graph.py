"""`CscGraph`, the graph of `mha_gat` and `mha_gat_v2`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor

from edgegrad.errors import wrong_type, wrong_value
from edgegrad.graph import Graph, build, make_bipartite_csc, make_csc
from edgegrad.interop import view
from edgegrad.torch.graphs import Reference, maps, reference

_WHERE = "CscGraph"


@dataclass(frozen=True, eq=False)
class CscGraph:
    """A graph in compressed columns by destination, made of tensors, on their device.

    Parameters
    ----------
    offsets : Tensor (num_dst_nodes + 1), int32 or int64
        Where each destination's edges begin, closed by the number of edges.
    indices : Tensor (num_edges), like `offsets`
        Source of each edge.
    num_src_nodes : int
        Number of sources. Where it is at least the number of destinations and features are one
        tensor, destinations are the first sources.
    map_csc_to_coo : Tensor (num_edges), like `offsets`, or None
        Row of each edge in arrays by edge; None: its position.
    csc_rev_offsets : Tensor (num_src_nodes + 1), like `offsets`, or None
        Where each source's edges begin among those sorted by source.
    map_rev_to_coo : Tensor (num_edges), like `offsets`, or None
        Row in arrays by edge of the edges sorted by source. Given with `csc_rev_offsets` or not at
        all; without them the reverse graph is built when a gradient first needs it.

    Raises
    ------
    ArgumentError
        If a tensor is not as described. All values are checked here, once.
    """

    offsets: Tensor
    indices: Tensor
    num_src_nodes: int
    map_csc_to_coo: Tensor | None = None
    csc_rev_offsets: Tensor | None = None
    map_rev_to_coo: Tensor | None = None
    struct: Graph = field(default=None, repr=False)  # type: ignore[assignment]
    _torch: Reference = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if (self.csc_rev_offsets is None) != (self.map_rev_to_coo is None):
            name = "map_rev_to_coo" if self.map_rev_to_coo is None else "csc_rev_offsets"
            raise wrong_type(_WHERE, name, "type NoneType", "both reverse arrays or neither")
        for name in ("offsets", "indices", "map_csc_to_coo", "csc_rev_offsets", "map_rev_to_coo"):
            _check(name, getattr(self, name), self.offsets)
        struct = self.struct
        if struct is None:
            n_src, bipartite = self.num_src_nodes, _is_bipartite(self)
            if bipartite:
                struct = make_bipartite_csc(self.offsets, self.indices, n_src, self.map_csc_to_coo)
            else:
                maps_ = self.map_csc_to_coo
                struct = make_csc(self.offsets, self.indices, maps_, n_src_nodes=n_src)
            object.__setattr__(self, "struct", struct)
        if self.csc_rev_offsets is not None and not struct.has_reverse:
            struct.cached("reverse", lambda: _reverse(self, struct))
        object.__setattr__(self, "_torch", reference(_WHERE, struct))

    @property
    def num_dst_nodes(self) -> int:
        """Number of destinations."""
        return self.struct.n_dst_nodes

    @property
    def num_edges(self) -> int:
        """Number of edges."""
        return self.struct.n_indices

    @property
    def has_reverse_csc(self) -> bool:
        """Whether this object has the arrays of the reverse graph."""
        return self.csc_rev_offsets is not None

    def with_reverse_csc(self) -> CscGraph:
        """Return a graph that has the arrays of the reverse graph; itself if it does."""
        if self.has_reverse_csc:
            return self
        stream = torch.cuda.current_stream(self.offsets.device) if self.offsets.is_cuda else None
        rev = build.reverse(self.struct, stream.cuda_stream if stream else 0)
        position = torch.from_dlpack(rev.position)
        by_coo = position
        if self.map_csc_to_coo is not None:
            by_coo = maps(self.struct)[0].index_select(0, position)
        return replace(self, csc_rev_offsets=torch.from_dlpack(rev.offsets), map_rev_to_coo=by_coo)


def _is_bipartite(graph: CscGraph) -> bool:
    n = graph.num_src_nodes
    whole = isinstance(n, (int, np.integer)) and not isinstance(n, bool)
    return whole and n < len(graph.offsets) - 1


def _check(name: str, a: Tensor | None, like: Tensor) -> None:
    if a is None and name not in ("offsets", "indices"):
        return
    if not isinstance(a, Tensor):
        raise wrong_type(_WHERE, name, f"type {type(a).__name__}", "a torch.Tensor")
    if a.dtype != like.dtype:
        raise wrong_type(_WHERE, name, f"dtype {a.dtype}", f"{like.dtype}, as `offsets`")
    if a.device != like.device:
        raise wrong_value(_WHERE, name, f"device {a.device}", f"{like.device}, as `offsets`")


def _reverse(graph: CscGraph, struct: Graph) -> build.Reverse:
    """Read the given arrays of the reverse graph, after a check that they are of this graph."""
    offsets, by_coo = graph.csc_rev_offsets, graph.map_rev_to_coo
    assert offsets is not None
    assert by_coo is not None
    n, edges = struct.n_src_nodes, struct.n_indices
    for name, a, size in (("csc_rev_offsets", offsets, n + 1), ("map_rev_to_coo", by_coo, edges)):
        if tuple(a.shape) != (size,):
            raise wrong_value(_WHERE, name, f"shape {tuple(a.shape)}", f"({size},)")
    sources = torch.from_dlpack(struct.indices).long()
    expected = torch.zeros_like(offsets)
    expected[1:] = torch.bincount(sources, minlength=n).cumsum(0)
    if not torch.equal(offsets, expected):
        has = "values that are not those of the graph"
        raise wrong_value(_WHERE, "csc_rev_offsets", has, "the edges of each source, added up")
    in_range = bool(((by_coo >= 0) & (by_coo < edges)).all())
    position = by_coo
    if in_range and struct.map_csc_to_coo is not None:
        position = maps(struct)[1].index_select(0, by_coo)
    by_source = torch.repeat_interleave(torch.arange(n, device=offsets.device), expected.diff())
    each_once = in_range and torch.equal(
        position.long().sort().values, torch.arange(edges, device=offsets.device)
    )
    if not each_once or not torch.equal(sources[position.long()], by_source):
        has = "values that are not those of the graph"
        raise wrong_value(_WHERE, "map_rev_to_coo", has, "every edge once, sorted by source")
    rows = torch.repeat_interleave(
        torch.arange(struct.n_dst_nodes, dtype=position.dtype, device=offsets.device),
        torch.from_dlpack(struct.offsets).diff(),
    )
    arrays = (offsets.contiguous(), rows[position.long()], position.contiguous())
    return build.Reverse(*(view(_WHERE, "map_rev_to_coo", a, keep=True) for a in arrays))
