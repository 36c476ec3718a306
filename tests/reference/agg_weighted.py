"""agg_weighted: sums and means by scipy.sparse, extrema destination by destination."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from graphs import GraphData
from tolerances import Bounded

from edgegrad import AggOp
from edgegrad.operators.agg_weighted import AGG_CONCAT_WEIGHTED_N2N, AGG_WEIGHTED_N2N
from reference import Arrays, Case
from reference.agg_simple import EXTREMA
from reference.aggregation import aggregate, backward, each, exact

_BASIC = (AggOp.Sum, AggOp.Mean, AggOp.Min, AggOp.Max)


def cases(graph: GraphData, rng: np.random.Generator, dim: int = 5) -> Iterator[Case]:
    """Every operation, both halves, with and without the own rows, once in a batch."""
    for op in _BASIC:
        yield from _pair(graph, rng, op, False, (), dim)
        if not graph.bipartite:
            yield from _pair(graph, rng, op, True, (), dim)
    yield from _pair(graph, rng, AggOp.Mean, False, (2,), dim)
    yield from _pair(graph, rng, AggOp.Max, not graph.bipartite, (2,), dim)


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
    graph: GraphData,
    rng: np.random.Generator,
    op: AggOp,
    own: bool,
    lead: tuple[int, ...],
    dim: int,
) -> Iterator[Case]:
    operator = AGG_CONCAT_WEIGHTED_N2N if own else AGG_WEIGHTED_N2N
    batched = bool(lead)
    x, w = rng.standard_normal((*lead, graph.n_src, dim)), _weights(graph, rng)
    g = rng.standard_normal((*lead, graph.n_dst, 2 * dim if own else dim))

    def forward(a: Arrays) -> dict[str, Bounded]:
        xs = a["input_embedding"] if batched else a["input_embedding"][None]
        found = [_forward(graph, op, own, m, a["edge_weight"]) for m in xs]
        degree = graph.adjacency(a["edge_weight"]).sum(axis=1)
        out = {
            "output_embedding": each([f[0] for f in found], batched),
            "node_degree": Bounded(degree, np.diff(graph.offsets), np.abs(degree)),
        }
        if op.has_winner:
            out[EXTREMA] = each([exact(f[1]) for f in found], batched)
        return out

    def back(a: Arrays) -> dict[str, Bounded]:
        shared = ("edge_weight", "node_degree")
        n = len(a["input_embedding"]) if batched else 1
        found = [
            _backward(
                graph, op, own,
                {k: v[i] if batched and k not in shared else v for k, v in a.items()},
            )
            for i in range(n)
        ]  # fmt: skip
        dw = [f["grad_edge_weight"] for f in found]
        total, size = (sum(getattr(b, name) for b in dw) for name in ("value", "magnitude"))
        return {
            "grad_input": each([f["grad_input"] for f in found], batched),
            "grad_edge_weight": Bounded(total, dw[0].terms * n, size),
        }

    options = {"aggregation_operation": op}
    read = {"input_embedding": x, "edge_weight": w}
    yield Case(operator, "fwd", options, read, forward, kind="csc")
    made = forward(read)
    reads: dict[str, Any] = {"grad_output": g, **read}
    if op.has_winner:
        reads[EXTREMA] = made[EXTREMA].value
    if op is AggOp.Mean:
        reads["output_embedding"] = made["output_embedding"].value
        if own:
            reads["node_degree"] = made["node_degree"].value
    yield Case(operator, "bwd", options, reads, back, kind="csc")
