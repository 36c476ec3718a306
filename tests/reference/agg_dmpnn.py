"""agg_dmpnn: products of scipy.sparse matrices of edges by nodes, in float64."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse

from edgegrad.operators.agg_dmpnn import AGG_DMPNN_E2E
from graphs import GraphData
from reference import Arrays, Case
from reference.agg_simple import edge_ids
from tolerances import Bounded


def _matrices(graph: GraphData, reverse: np.ndarray) -> tuple[Any, Any, Any]:
    """Edge ids x nodes, by source and by destination, and edge ids x edges taken away."""
    ids, n, ones = edge_ids(graph), graph.n_edges, np.ones(graph.n_edges)
    nodes = (n, max(graph.n_src, graph.n_dst))
    by_source = scipy.sparse.csr_array((ones, (ids, graph.indices)), shape=nodes)
    by_destination = scipy.sparse.csr_array((ones, (ids, graph.destinations)), shape=nodes)
    has = np.flatnonzero(reverse >= 0)
    taken = (np.ones(len(has)), (has, reverse[has].astype(int)))
    return by_source, by_destination, scipy.sparse.csr_array(taken, shape=(n, n))


def cases(graph: GraphData, rng: np.random.Generator, dim: int = 5) -> Iterator[Case]:
    """With and without the own features; any edge may be the reverse of any."""
    if graph.bipartite:
        return
    for own in (False, True):
        reverse = rng.integers(-1, max(1, graph.n_edges), graph.n_edges)
        yield from _pair(graph, rng, reverse, own, dim)


def _pair(
    graph: GraphData, rng: np.random.Generator, reverse: np.ndarray, own: bool, dim: int
) -> Iterator[Case]:
    def forward(a: Arrays) -> dict[str, Bounded]:
        h = a["input_edge_embedding"]
        source, destination, taken = _matrices(graph, a["rev_edge_ids"])
        value = source @ (destination.T @ h) - taken @ h
        size = source @ (destination.T @ np.abs(h)) + taken @ np.abs(h)
        if own:
            value, size = np.hstack([value, h]), np.hstack([size, np.abs(h)])
        return {"output_edge_embedding": Bounded(value, graph.n_edges + 2, size)}

    def back(a: Arrays) -> dict[str, Bounded]:
        g, mine = np.split(a["grad_output_edge"], [dim], axis=1)
        source, destination, taken = _matrices(graph, a["rev_edge_ids"])
        value = destination @ (source.T @ g) - taken.T @ g + (mine if own else 0.0)
        size = destination @ (source.T @ np.abs(g)) + taken.T @ np.abs(g)
        size = size + (np.abs(mine) if own else 0.0)
        return {"grad_input_edge": Bounded(value, graph.n_edges + 2, size)}

    options = {"concat_own": own}
    h = rng.standard_normal((graph.n_edges, dim))
    g = rng.standard_normal((graph.n_edges, 2 * dim if own else dim))
    read = {"input_edge_embedding": h, "rev_edge_ids": reverse}
    yield Case(AGG_DMPNN_E2E, "fwd", options, read, forward, kind="csc")
    read = {"grad_output_edge": g, "rev_edge_ids": reverse}
    yield Case(AGG_DMPNN_E2E, "bwd", options, read, back, kind="csc")
