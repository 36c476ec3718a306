"""agg_simple: aggregates of gathered rows, destination by destination."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from edgegrad import AggOp
from edgegrad.operator import BATCH
from edgegrad.operators import agg_simple
from graphs import GraphData
from reference import Arrays, Case
from reference.aggregation import aggregate, backward, exact, in_batch, scatter
from tolerances import Bounded

EXTREMA = "output_extrema_location"


def cases(
    graph: GraphData, rng: np.random.Generator, dim_node: int = 5, dim_edge: int = 3
) -> Iterator[Case]:
    """Every operation, both halves; batched nodes once for each kind of kernel."""
    for op in AggOp:
        yield from _n2n(graph, rng, op, dim_node)
        yield from _e2n(graph, rng, op, dim_edge)
        yield from _n2n_e2n(graph, rng, op, dim_node, dim_edge)
    for op in (AggOp.Mean, AggOp.Max, AggOp.Std):
        pairs = [_n2n(graph, rng, op, dim_node) for _ in range(2)]
        yield from map(in_batch, *pairs)


def edge_ids(graph: GraphData) -> np.ndarray:
    return np.arange(graph.n_edges) if graph.edge_ids is None else graph.edge_ids


def values_of(graph: GraphData, kind: str, x: np.ndarray) -> np.ndarray:
    """What every edge brings, in CSC order."""
    return x[graph.indices] if kind == "node" else x[edge_ids(graph)]


def gradient_of(graph: GraphData, kind: str, grad: Any, n_src: int) -> Bounded:
    most = int(np.diff(graph.offsets).max(initial=0))
    if kind == "node":
        return scatter(graph.indices, n_src, grad, most)
    return scatter(edge_ids(graph), graph.n_edges, grad, most)


def deviation(y: np.ndarray) -> np.ndarray:
    """An output to go back from; differences that are rounding alone are none."""
    return np.where(np.abs(y) < 1e-12, 0.0, y)


def _single(
    graph: GraphData, operator: Any, kind: str, op: AggOp, x: np.ndarray, g: np.ndarray
) -> Iterator[Case]:
    """Both halves of an operator with one input."""

    def fwd(a: Arrays) -> dict[str, Bounded]:
        found = aggregate(op, graph.offsets, values_of(graph, kind, a["input_embedding"]))
        out = {"output_embedding": found.bounded}
        return {**out, EXTREMA: exact(found.extrema)} if op.has_winner else out

    def bwd(a: Arrays) -> dict[str, Bounded]:
        grad = backward(
            op, graph.offsets, a["grad_output"], extrema=a.get(EXTREMA),
            values=values_of(graph, kind, a["input_embedding"]) if op.is_spread else None,
            output=a.get("output_embedding"),
        )  # fmt: skip
        return {"grad_input": gradient_of(graph, kind, grad, graph.n_src)}

    def case(half: str, reads: Arrays, oracle: Any) -> Case:
        options = {"aggregation_operation": op}
        return Case(operator, half, options, reads, oracle, kind="csc", without=(BATCH,))

    yield case("fwd", {"input_embedding": x}, fwd)
    reads: dict[str, Any] = {"grad_output": g}
    made = fwd({"input_embedding": x})
    if op.has_winner:
        reads[EXTREMA] = made[EXTREMA].value
    if op.is_spread:
        reads["input_embedding"] = x
        reads["output_embedding"] = deviation(made["output_embedding"].value)
    yield case("bwd", reads, bwd)


def _n2n(graph: GraphData, rng: np.random.Generator, op: AggOp, dim: int) -> Iterator[Case]:
    x = rng.standard_normal((graph.n_src, dim))
    g = rng.standard_normal((graph.n_dst, dim))
    yield from _single(graph, agg_simple.AGG_SIMPLE_N2N, "node", op, x, g)


def _e2n(graph: GraphData, rng: np.random.Generator, op: AggOp, dim: int) -> Iterator[Case]:
    x = rng.standard_normal((graph.n_edges, dim))
    g = rng.standard_normal((graph.n_dst, dim))
    yield from _single(graph, agg_simple.AGG_SIMPLE_E2N, "edge", op, x, g)


def both_values(graph: GraphData, a: Arrays) -> np.ndarray:
    """Node and edge features side by side, for every edge."""
    nodes = values_of(graph, "node", a["input_node_embedding"])
    return np.hstack([nodes, values_of(graph, "edge", a["input_edge_embedding"])])


def part_of(grad: Any, columns: slice) -> Any:
    return type(grad)(grad.value[:, columns], grad.size[:, columns])


def _n2n_e2n(
    graph: GraphData, rng: np.random.Generator, op: AggOp, dim_node: int, dim_edge: int
) -> Iterator[Case]:
    x = rng.standard_normal((graph.n_src, dim_node))
    h = rng.standard_normal((graph.n_edges, dim_edge))
    g = rng.standard_normal((graph.n_dst, dim_node + dim_edge))
    read = {"input_node_embedding": x, "input_edge_embedding": h}

    def fwd(a: Arrays) -> dict[str, Bounded]:
        found = aggregate(op, graph.offsets, both_values(graph, a))
        out = {"output_embedding": found.bounded}
        return {**out, EXTREMA: exact(found.extrema)} if op.has_winner else out

    def bwd(a: Arrays) -> dict[str, Bounded]:
        grad = backward(
            op, graph.offsets, a["grad_output"], extrema=a.get(EXTREMA),
            values=both_values(graph, a) if op.is_spread else None,
            output=a.get("output_embedding"),
        )  # fmt: skip
        node, edge = (part_of(grad, c) for c in (slice(dim_node), slice(dim_node, None)))
        return {
            "grad_input_node": gradient_of(graph, "node", node, graph.n_src),
            "grad_input_edge": gradient_of(graph, "edge", edge, graph.n_src),
        }

    operator, options = agg_simple.AGG_SIMPLE_N2N_E2N, {"aggregation_operation": op}
    yield Case(operator, "fwd", options, read, fwd, kind="csc")
    reads: dict[str, Any] = {"grad_output": g}
    made = fwd(read)
    if op.has_winner:
        reads[EXTREMA] = made[EXTREMA].value
    if op.is_spread:
        reads |= read | {"output_embedding": deviation(made["output_embedding"].value)}
    yield Case(operator, "bwd", options, reads, bwd, kind="csc")
