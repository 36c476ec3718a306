"""agg_weighted: sums and means by scipy.sparse, extrema destination by destination."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from edgegrad import AggOp
from edgegrad.operator import BATCH
from edgegrad.operators.agg_weighted import AGG_CONCAT_WEIGHTED_N2N, AGG_WEIGHTED_N2N
from graphs import GraphData
from reference import Arrays, Case
from reference.agg_simple import EXTREMA
from reference.aggregation import aggregate, backward, exact, in_batch
from tolerances import Bounded

_BASIC = (AggOp.Sum, AggOp.Mean, AggOp.Min, AggOp.Max)


def cases(graph: GraphData, rng: np.random.Generator, dim: int = 5) -> Iterator[Case]:
    """Every operation, both halves, with and without the own rows, once in a batch."""
    for op in _BASIC:
        yield from _pair(graph, rng, op, False, dim)
        if not graph.bipartite:
            yield from _pair(graph, rng, op, True, dim)
    for op, own in ((AggOp.Mean, False), (AggOp.Max, False), (AggOp.Mean, True)):
        if not (own and graph.bipartite):
            yield from map(in_batch, *[_pair(graph, rng, op, own, dim) for _ in range(2)])


def _weights(graph: GraphData, rng: np.random.Generator) -> np.ndarray:
    """Positive weights, of which no sum is near 0, but 0 at every edge of one destination."""
    w = rng.uniform(0.5, 2.0, graph.n_edges)
    if graph.n_dst > 2:
        w[graph.destinations == 2] = 0.0
    return w


def _forward(graph: GraphData, op: AggOp, own: bool, x: np.ndarray, w: np.ndarray) -> Any:
    degree = graph.adjacency(w).sum(axis=1)
    found = aggregate(op, graph.offsets, x[graph.indices], w[:, None], degree)
    value = found.value
    if not op.has_winner:
        value = graph.adjacency(w) @ x
        if op is AggOp.Mean:
            divisor = degree[:, None]
            value = np.divide(value, divisor, out=np.zeros_like(value), where=divisor != 0)
    size, rows = found.bounded.magnitude, x[: graph.n_dst]
    if own:
        value, size = np.hstack([value, rows]), np.hstack([size, np.abs(rows)])
    return Bounded(value, 2 * found.bounded.terms, size), found.extrema


def _backward(graph: GraphData, op: AggOp, own: bool, a: Arrays) -> dict[str, Bounded]:
    x, w, dim = a["input_embedding"], a["edge_weight"], a["input_embedding"].shape[1]
    g = a["grad_output"][:, :dim]
    degree = a.get("node_degree")
    if degree is None:
        degree = graph.adjacency(w).sum(axis=1)
    per_edge = backward(op, graph.offsets, g, extrema=a.get(EXTREMA), divisor=degree).value
    dx, size = np.zeros((2, *x.shape))
    np.add.at(dx, graph.indices, w[:, None] * per_edge)
    np.add.at(size, graph.indices, np.abs(w[:, None] * per_edge))
    if own:
        dx[: graph.n_dst] += a["grad_output"][:, dim:]
        size[: graph.n_dst] += np.abs(a["grad_output"][:, dim:])
    sources = x[graph.indices]
    centred, both = sources, np.abs(sources)
    if op is AggOp.Mean:
        y = a["output_embedding"][graph.destinations, :dim]
        centred, both = sources - y, both + np.abs(y)
    most = int(np.diff(graph.offsets).max(initial=0))
    counts = np.bincount(graph.indices, minlength=graph.n_src)[:, None]
    return {
        "grad_input": Bounded(dx, counts + most + 2, size),
        "grad_edge_weight": Bounded(
            (per_edge * centred).sum(1), dim + most + 2, (np.abs(per_edge) * both).sum(1)
        ),
    }


def _pair(
    graph: GraphData, rng: np.random.Generator, op: AggOp, own: bool, dim: int
) -> Iterator[Case]:
    operator = AGG_CONCAT_WEIGHTED_N2N if own else AGG_WEIGHTED_N2N
    x, w = rng.standard_normal((graph.n_src, dim)), _weights(graph, rng)
    g = rng.standard_normal((graph.n_dst, 2 * dim if own else dim))

    def forward(a: Arrays) -> dict[str, Bounded]:
        y, extrema = _forward(graph, op, own, a["input_embedding"], a["edge_weight"])
        degree = graph.adjacency(a["edge_weight"]).sum(axis=1)
        out = {
            "output_embedding": y,
            "node_degree": Bounded(degree, np.diff(graph.offsets), np.abs(degree)),
        }
        return {**out, EXTREMA: exact(extrema)} if op.has_winner else out

    def case(half: str, reads: Arrays, oracle: Any) -> Case:
        options = {"aggregation_operation": op}
        return Case(operator, half, options, reads, oracle, kind="csc", without=(BATCH,))

    read = {"input_embedding": x, "edge_weight": w}
    yield case("fwd", read, forward)
    made = forward(read)
    reads: dict[str, Any] = {"grad_output": g, **read}
    if op.has_winner:
        reads[EXTREMA] = made[EXTREMA].value
    if op is AggOp.Mean:
        reads["output_embedding"] = made["output_embedding"].value
        if own:
            reads["node_degree"] = made["node_degree"].value
    yield case("bwd", reads, lambda a: _backward(graph, op, own, a))
