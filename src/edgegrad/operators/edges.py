"""Edges as kernels walk them: grouped by row, each reading a row of nodes or of edges."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from edgegrad import _host
from edgegrad.backends import host, rows
from edgegrad.graph import Graph, build
from edgegrad.graph.build import Pieces
from edgegrad.interop import ArrayView

# What an edge reads: the node at its other end, or the row of its edge id or of its CSC position.
Reads = Literal["node", "edge", "position"]


@dataclass(frozen=True)
class Edges:
    """Edges grouped by row; edges ``offsets[r]`` to ``offsets[r + 1]`` belong to row r.

    Edge e is at CSC position ``order[e]`` (None: e) and reads row ``ids[e]`` (None: the row of its
    edge id, ``map[position]``; None: of its position). `cut` says how long rows are cut. Without
    offsets the rows have no edges.
    """

    rows: int
    count: int
    index_dtype: str
    offsets: ArrayView | None = None
    ids: ArrayView | None = None
    order: ArrayView | None = None
    map: ArrayView | None = None
    cut: Pieces | None = None

    @property
    def wide(self) -> bool:
        """Whether ids have 64 bits."""
        return self.index_dtype == "int64"

    @cached_property
    def native(self) -> _host.Edges:
        """The same for the host kernels."""
        arrays = (self.offsets, self.ids, self.order, self.map)
        pieces = (0, None, None, None)
        if self.cut is not None:
            pieces = (self.cut.limit, self.cut.row, self.cut.begin, self.cut.end)
        return _host.Edges(*arrays, self.rows, self.count, *pieces)


def incoming(graph: Graph, reads: Reads = "node", stream_id: int = 0) -> Edges:
    """Return the edges by destination, in CSC order."""

    def make() -> Edges:
        return Edges(
            graph.n_dst_nodes,
            graph.n_indices,
            graph.index_dtype,
            graph.offsets,
            ids=graph.indices if reads == "node" else None,
            map=graph.map_csc_to_coo if reads != "position" else None,
            cut=build.pieces(graph, "rows", graph.offsets, _limit(graph), stream_id),
        )

    return graph.cached(("incoming", reads), make)


def outgoing(graph: Graph, reads: Reads = "node", stream_id: int = 0) -> Edges:
    """Return the edges by source, inside a source in CSC order."""

    def make() -> Edges:
        rev = build.reverse(graph, stream_id)
        return Edges(
            graph.n_src_nodes,
            graph.n_indices,
            graph.index_dtype,
            rev.offsets,
            ids=rev.dst if reads == "node" else None,
            order=rev.position,
            map=graph.map_csc_to_coo if reads != "position" else None,
            cut=build.pieces(graph, "reverse", rev.offsets, _limit(graph), stream_id),
        )

    return graph.cached(("outgoing", reads), make)


def _limit(graph: Graph) -> int:
    return host.PIECE_EDGES if graph.on_host else rows.PIECE_EDGES
