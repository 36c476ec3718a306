"""agg_dmpnn: one dense matrix of edges by edges, in float64."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from graphs import GraphData
from tolerances import Bounded

from edgegrad.operators.agg_dmpnn import AGG_DMPNN_E2E
from reference import Arrays, Case
from reference.agg_simple import edge_ids


def messages(graph: GraphData, reverse: np.ndarray) -> np.ndarray:
    """Row e: which edges are added up for edge id e, and which is taken away."""
    ids = edge_ids(graph)
    source, destination = np.zeros((2, graph.n_edges), int)
    source[ids], destination[ids] = graph.indices, graph.destinations
    matrix = (source[:, None] == destination[None, :]).astype(float)
    has = np.flatnonzero(reverse >= 0)
    np.subtract.at(matrix, (has, reverse[has].astype(int)), 1.0)
    return matrix


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
        h, matrix = a["input_edge_embedding"], messages(graph, a["rev_edge_ids"])
        # An edge that is added and taken away still costs two roundings.
        size = (np.abs(matrix) + (matrix == 0)) @ np.abs(h)
        value = matrix @ h
        if own:
            value, size = np.hstack([value, h]), np.hstack([size, np.abs(h)])
        return {"output_edge_embedding": Bounded(value, graph.n_edges + 2, size)}

    def back(a: Arrays) -> dict[str, Bounded]:
        g, matrix = a["grad_output_edge"], messages(graph, a["rev_edge_ids"])
        value = matrix.T @ g[:, :dim] + (g[:, dim:] if own else 0.0)
        size = (np.abs(matrix) + (matrix == 0)).T @ np.abs(g[:, :dim])
        size = size + (np.abs(g[:, dim:]) if own else 0.0)
        return {"grad_input_edge": Bounded(value, graph.n_edges + 2, size)}

    options = {"concat_own": own}
    h = rng.standard_normal((graph.n_edges, dim))
    g = rng.standard_normal((graph.n_edges, 2 * dim if own else dim))
    read = {"input_edge_embedding": h, "rev_edge_ids": reverse}
    yield Case(AGG_DMPNN_E2E, "fwd", options, read, forward, kind="csc")
    read = {"grad_output_edge": g, "rev_edge_ids": reverse}
    yield Case(AGG_DMPNN_E2E, "bwd", options, read, back, kind="csc")
