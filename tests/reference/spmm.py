"""spmm: products with scipy.sparse for sums and means, row by row for extrema, in float64."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from edgegrad import AggOp
from edgegrad.operator import BATCH, HEADS
from edgegrad.operators.spmm import SPMM
from graphs import GraphData
from reference import Arrays, Case
from reference.aggregation import aggregate, exact, in_batch
from tolerances import Bounded

_BASIC = (AggOp.Sum, AggOp.Mean, AggOp.Min, AggOp.Max)


def cases(graph: GraphData, rng: np.random.Generator, dim: int = 6) -> Iterator[Case]:
    """Every reduction, transposed or not; heads and batch in turn."""
    for op in _BASIC:
        for transpose in (False, True):
            for heads in (None, 0, 2):
                yield from _pair(graph, rng, op, transpose, heads, dim)
    for op, transpose, heads in ((AggOp.Mean, False, 3), (AggOp.Max, True, 0)):
        pairs = [_pair(graph, rng, op, transpose, heads, dim) for _ in range(2)]
        yield from map(in_batch, *pairs)


def _matrices(graph: GraphData, values: Any, heads: int, transpose: bool) -> list[Any]:
    """The matrix of every head."""
    columns = [None] * heads if values is None else values.reshape(graph.n_edges, heads).T
    made = [graph.adjacency(v) for v in columns]
    return [m.T.tocsr() for m in made] if transpose else made


def _order(graph: GraphData, transpose: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """CSC positions by row of the result, the offsets of those rows, the rows edges read."""
    if not transpose:
        return np.arange(graph.n_edges), graph.offsets, graph.indices
    order = np.argsort(graph.indices, kind="stable")
    counts = np.bincount(graph.indices, minlength=graph.n_src)
    return order, np.concatenate([[0], np.cumsum(counts)]), graph.destinations


def _per_column(values: Any, n_edges: int, dim: int) -> np.ndarray:
    """The factor of each edge and column."""
    if values is None:
        return np.ones((n_edges, dim))
    columns = values.reshape(n_edges, _heads(values))
    return np.repeat(columns, dim // columns.shape[1], axis=1)


def _forward(graph: GraphData, op: AggOp, transpose: bool, values: Any, x: np.ndarray) -> Any:
    order, offsets, read = _order(graph, transpose)
    k = _per_column(values, graph.n_edges, x.shape[1])
    found = aggregate(op, offsets, x[read[order]], k[order])
    if op.has_winner:
        extrema = np.where(found.extrema < 0, -1, np.append(order, -1)[found.extrema])
        return found.bounded, extrema
    # Sums come from another route: one sparse product for every head.
    heads = 1 if values is None or values.ndim == 1 else values.shape[1]
    width, counts = x.shape[1] // heads, np.maximum(np.diff(offsets), 1)[:, None]
    value = np.hstack(
        [
            m @ x[:, h * width : (h + 1) * width]
            for h, m in enumerate(_matrices(graph, values, heads, transpose))
        ]
    )
    mean = counts if op is AggOp.Mean else 1
    return Bounded(value / mean, found.bounded.terms, found.bounded.magnitude), None


def _edge_gradient(
    graph: GraphData, op: AggOp, transpose: bool, g: np.ndarray, extrema: Any
) -> np.ndarray:
    """The gradient of every edge's product."""
    _, offsets, _ = _order(graph, transpose)
    rows = graph.indices if transpose else graph.destinations
    per_edge = g[rows]
    if op is AggOp.Mean:
        per_edge = per_edge / np.diff(offsets)[rows][:, None]
    if op.has_winner:
        per_edge = np.where(extrema[rows] == np.arange(graph.n_edges)[:, None], per_edge, 0.0)
    return per_edge


def _backward(graph: GraphData, op: AggOp, transpose: bool, a: Arrays) -> dict[str, Bounded]:
    values, x, g = a["values"], a["dense"], a["grad_output"]
    _, _, read = _order(graph, transpose)
    n_columns, dim = x.shape
    k = _per_column(values, graph.n_edges, dim)
    per_edge = _edge_gradient(graph, op, transpose, g, a.get("extrema"))
    dx, size = np.zeros((2, n_columns, dim))
    np.add.at(dx, read, k * per_edge)
    np.add.at(size, read, np.abs(k * per_edge))
    products = per_edge * x[read]
    dv, dv_size = (
        p.reshape(graph.n_edges, _heads(values), dim // _heads(values)).sum(2)
        for p in (products, np.abs(products))
    )
    counts = np.bincount(read, minlength=n_columns)[:, None]
    like = (graph.n_edges,) if values is None or values.ndim == 1 else values.shape
    return {
        "grad_dense": Bounded(dx, counts + 1, size),
        "grad_values": Bounded(dv.reshape(like), dim, dv_size.reshape(like)),
    }


def _heads(values: Any) -> int:
    return 1 if values is None or values.ndim == 1 else values.shape[1]


def _pair(
    graph: GraphData,
    rng: np.random.Generator,
    op: AggOp,
    transpose: bool,
    heads: int | None,
    dim: int,
) -> Iterator[Case]:
    """Both halves; `heads` is None for no values, 0 for one value per edge."""
    n_rows, n_columns = graph.n_dst, graph.n_src
    if transpose:
        n_rows, n_columns = n_columns, n_rows
    x, g = rng.standard_normal((n_columns, dim)), rng.standard_normal((n_rows, dim))
    shape = (graph.n_edges, heads) if heads else (graph.n_edges,)
    values = None if heads is None else rng.standard_normal(shape)

    def forward(a: Arrays) -> dict[str, Bounded]:
        y, extrema = _forward(graph, op, transpose, a["values"], a["dense"])
        return {"output": y, "extrema": exact(extrema)} if op.has_winner else {"output": y}

    def case(half: str, reads: Arrays, oracle: Any) -> Case:
        options = {"reduce": op, "transpose": transpose}
        without = (BATCH,) if heads else (BATCH, HEADS)
        return Case(SPMM, half, options, reads, oracle, kind="csc", without=without)

    read: dict[str, Any] = {"values": values, "dense": x}
    yield case("fwd", read, forward)
    reads = {"grad_output": g, **read}
    if op.has_winner:
        reads["extrema"] = forward(read)["extrema"].value
    yield case("bwd", reads, lambda a: _backward(graph, op, transpose, a))
