"""Named graphs, as NumPy arrays in CSC order and as graph structs on any device."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse

import edgegrad


@dataclass(frozen=True, eq=False)
class GraphData:
    """Edges grouped by destination, with types; int64 and int32 NumPy arrays."""

    offsets: np.ndarray
    indices: np.ndarray
    edge_types: np.ndarray
    n_src: int
    n_types: int
    bipartite: bool = False
    edge_ids: np.ndarray | None = None

    @property
    def n_dst(self) -> int:
        return len(self.offsets) - 1

    @property
    def n_edges(self) -> int:
        return len(self.indices)

    @property
    def destinations(self) -> np.ndarray:
        """Destination of every CSC position."""
        return np.repeat(np.arange(self.n_dst), np.diff(self.offsets))

    def adjacency(self, values: np.ndarray | None = None) -> scipy.sparse.csr_array:
        """The graph as destinations x sources, float64, duplicates apart."""
        data = np.ones(self.n_edges) if values is None else np.asarray(values, np.float64)
        shape = (self.n_dst, self.n_src)
        return scipy.sparse.csr_array((data, self.indices, self.offsets), shape=shape)

    def make(self, device: Any, index_dtype: Any = np.int32, kind: str = "csc_hg") -> Any:
        """A graph struct of `kind` ("csc" or "csc_hg"), bipartite if the data is."""
        to = device.array
        offsets, indices = (to(a.astype(index_dtype)) for a in (self.offsets, self.indices))
        edge_map = None if self.edge_ids is None else to(self.edge_ids.astype(index_dtype))
        if kind == "csc" and self.bipartite:
            return edgegrad.make_bipartite_csc(offsets, indices, self.n_src, edge_map)
        if kind == "csc":
            return edgegrad.make_csc(offsets, indices, edge_map, n_src_nodes=self.n_src)
        types = to(self.edge_types.astype(np.int32))
        if self.bipartite:
            return edgegrad.make_bipartite_csc_hg(
                offsets, indices, self.n_src, 0, self.n_types, None, None, types, edge_map
            )
        return edgegrad.make_csc_hg(
            offsets, indices, 0, self.n_types, None, types, edge_map, n_src_nodes=self.n_src
        )


def from_edges(
    src: Any,
    dst: Any,
    n_src: int,
    n_dst: int,
    n_types: int = 3,
    *,
    bipartite: bool = False,
    seed: int = 0,
) -> GraphData:
    """Group edges by destination in a shuffled order inside columns; types are random."""
    src, dst = np.asarray(src, np.int64), np.asarray(dst, np.int64)
    rng = np.random.default_rng(seed)
    shuffled = rng.permutation(len(src))
    order = shuffled[np.argsort(dst[shuffled], kind="stable")]
    offsets = np.concatenate([[0], np.cumsum(np.bincount(dst, minlength=n_dst))])
    types = rng.integers(0, max(1, n_types), len(src)).astype(np.int32)
    return GraphData(
        offsets.astype(np.int64), src[order], types[order], n_src, n_types, bipartite, order
    )


def _power_law(n: int, edges: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return (n * rng.random(edges) ** 2).astype(int), (n * rng.random(edges) ** 4).astype(int)


def make(name: str) -> GraphData:
    """Return the graph of this name."""
    if name == "empty":
        return from_edges([], [], 0, 0)
    if name == "no_edges":
        return from_edges([], [], 5, 4)
    if name == "one_node":
        return from_edges([0], [0], 1, 1, n_types=1)
    if name == "chain":
        return from_edges(np.arange(16), np.arange(1, 17), 17, 17)
    if name == "star_hub":  # half of all edges enter node 3, the others are spread
        src = np.arange(1400) % 40
        return from_edges(src, np.where(src < 20, 3, src), 40, 40, n_types=4)
    if name == "power_law":
        return from_edges(*_power_law(60, 900, 1), 60, 60, n_types=5)
    if name == "bipartite":
        rng = np.random.default_rng(2)
        ends = rng.integers(0, 7, 50), rng.integers(0, 19, 50)
        return from_edges(*ends, 7, 19, bipartite=True)
    if name == "more_sources":
        rng = np.random.default_rng(3)
        return from_edges(rng.integers(0, 30, 60), rng.integers(0, 9, 60), 30, 9)
    if name == "multi_edge":
        rng = np.random.default_rng(4)
        return from_edges(rng.integers(0, 3, 40), rng.integers(0, 4, 40), 5, 5, n_types=2)
    raise KeyError(name)


NAMES = (
    "empty",
    "no_edges",
    "one_node",
    "chain",
    "star_hub",
    "power_law",
    "bipartite",
    "more_sources",
    "multi_edge",
)

# The graph of the recipes: nodes 0 to 3, edge ids in the caller's order.
G0 = GraphData(
    offsets=np.array([0, 2, 3, 3, 6]),
    indices=np.array([1, 2, 0, 0, 1, 3]),
    edge_types=np.array([0, 0, 0, 1, 1, 2], np.int32),
    n_src=4,
    n_types=3,
    edge_ids=np.array([4, 0, 2, 5, 1, 3]),
)


def permuted_g0() -> GraphData:
    """G0 with the edges of each column in another order."""
    order = np.array([1, 0, 2, 5, 3, 4])
    return replace(
        G0,
        indices=G0.indices[order],
        edge_types=G0.edge_types[order],
        edge_ids=G0.edge_ids[order],
    )
