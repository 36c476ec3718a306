"""update_efeat: rows of edges and of their ends, picked by NumPy, added back by scipy.sparse."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse

from edgegrad.operators.edge_update import UPDATE_EFEAT_E2E_CONCAT, UPDATE_EFEAT_E2E_SUM
from graphs import GraphData
from reference import Arrays, Case
from reference.agg_simple import edge_ids
from tolerances import Bounded

INPUTS = ("input_edge_embedding", "input_src_node_embedding", "input_dst_node_embedding")
GRADS = ("grad_input_edge", "grad_input_src_node", "grad_input_dst_node")


def cases(graph: GraphData, rng: np.random.Generator) -> Iterator[Case]:
    """Every choice of inputs."""
    for mask in range(1, 8):
        present = [bool(mask & 1 << i) for i in range(3)]
        yield from _concat(
            graph, rng, [d if p else 0 for d, p in zip((3, 5, 4), present, strict=True)]
        )
        yield from _sum(graph, rng, present, 4)


def _pickers(graph: GraphData) -> list[Any]:
    """Edge ids x edges, x sources, x destinations: which row each edge takes."""
    ids, n = edge_ids(graph), graph.n_edges
    columns = (ids, graph.indices, graph.destinations)
    counts = (n, graph.n_src, graph.n_dst)
    return [
        scipy.sparse.csr_array((np.ones(n), (ids, c)), shape=(n, m))
        for c, m in zip(columns, counts, strict=True)
    ]


def _inputs(graph: GraphData, rng: np.random.Generator, dims: list[int]) -> dict[str, Any]:
    counts = (graph.n_edges, graph.n_src, graph.n_dst)
    return {
        name: rng.standard_normal((n, d)) if d else None
        for name, n, d in zip(INPUTS, counts, dims, strict=True)
    }


def _gradients(graph: GraphData, parts: list[Any]) -> dict[str, Bounded]:
    found = {}
    for name, picker, part in zip(GRADS, _pickers(graph), parts, strict=True):
        if part is not None:
            terms = picker.sum(axis=0)[:, None]
            found[name] = Bounded(picker.T @ part, terms, picker.T @ np.abs(part))
    return found


def _rows(graph: GraphData, a: Arrays) -> list[np.ndarray]:
    """What each input given brings to every edge."""
    pickers = zip(INPUTS, _pickers(graph), strict=True)
    return [picker @ a[name] for name, picker in pickers if a[name] is not None]


def _concat(graph: GraphData, rng: np.random.Generator, dims: list[int]) -> Iterator[Case]:
    ends = np.cumsum([0, *dims])

    def forward(a: Arrays) -> dict[str, Bounded]:
        rows = _rows(graph, a)
        value = np.hstack(rows)
        return {"output_edge_embedding": Bounded(value, 0, np.abs(value))}

    def back(a: Arrays) -> dict[str, Bounded]:
        g = a["grad_output_edge"]
        parts = [g[:, i:j] if j > i else None for i, j in itertools.pairwise(ends)]
        return _gradients(graph, parts)

    op, read = UPDATE_EFEAT_E2E_CONCAT, _inputs(graph, rng, dims)
    yield Case(op, "fwd", {}, read, forward, kind="csc")
    g = rng.standard_normal((graph.n_edges, sum(dims)))
    told = dict(zip(("dim_edge", "dim_src", "dim_dst"), dims, strict=True))
    yield Case(op, "bwd", told, {"grad_output_edge": g}, back, kind="csc")


def _sum(
    graph: GraphData, rng: np.random.Generator, present: list[bool], dim: int
) -> Iterator[Case]:
    def forward(a: Arrays) -> dict[str, Bounded]:
        rows = _rows(graph, a)
        size = sum(np.abs(r) for r in rows)
        return {"output_edge_embedding": Bounded(sum(rows), 3, size)}

    def back(a: Arrays) -> dict[str, Bounded]:
        g = a["grad_output_edge"]
        return _gradients(graph, [g if p else None for p in present])

    op, read = UPDATE_EFEAT_E2E_SUM, _inputs(graph, rng, [dim if p else 0 for p in present])
    yield Case(op, "fwd", {}, read, forward, kind="csc")
    g = rng.standard_normal((graph.n_edges, dim))
    yield Case(op, "bwd", {"dim_edge": dim}, {"grad_output_edge": g}, back, kind="csc")
