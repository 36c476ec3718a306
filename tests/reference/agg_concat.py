"""agg_concat: aggregates of gathered rows with the own rows beside them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from edgegrad import AggOp
from edgegrad.operator import BATCH
from edgegrad.operators import agg_concat
from graphs import GraphData
from reference import Arrays, Case
from reference.agg_simple import EXTREMA, deviation, gradient_of, part_of, values_of
from reference.aggregation import aggregate, backward, exact, in_batch
from tolerances import Bounded


def cases(
    graph: GraphData, rng: np.random.Generator, dim_node: int = 5, dim_edge: int = 3
) -> Iterator[Case]:
    """Every operation, both halves; nodes' own rows only where there are such."""
    for op in AggOp:
        yield from _pair(graph, rng, op, "", "input_edge_embedding", dim_node, dim_edge)
        if not graph.bipartite:
            yield from _pair(graph, rng, op, "input_embedding", "", dim_node, 0)
            names = ("input_node_embedding", "input_edge_embedding")
            yield from _pair(graph, rng, op, *names, dim_node, dim_edge)
    if not graph.bipartite:
        pairs = [_pair(graph, rng, AggOp.Max, "input_embedding", "", dim_node, 0) for _ in "12"]
        yield from map(in_batch, *pairs)


def _operator(node: str, edge: str) -> Any:
    if not node:
        return agg_concat.AGG_CONCAT_E2N
    return agg_concat.AGG_CONCAT_N2N_E2N if edge else agg_concat.AGG_CONCAT_N2N


def _pair(
    graph: GraphData,
    rng: np.random.Generator,
    op: AggOp,
    node: str,
    edge: str,
    dim_node: int,
    dim_edge: int,
) -> Iterator[Case]:
    own = node or "input_node_embedding"
    read: dict[str, np.ndarray] = {}
    if edge:
        read[edge] = rng.standard_normal((graph.n_edges, dim_edge))
    read[own] = rng.standard_normal((graph.n_src if node else graph.n_dst, dim_node))
    width = dim_edge + (dim_node if node else 0)

    def values(a: Arrays) -> np.ndarray:
        parts = [values_of(graph, "node", a[node])] if node else []
        parts += [values_of(graph, "edge", a[edge])] if edge else []
        return np.hstack(parts)

    def forward(a: Arrays) -> dict[str, Bounded]:
        found = aggregate(op, graph.offsets, values(a))
        b, rows = found.bounded, a[own][: graph.n_dst]
        size = np.hstack([b.magnitude, np.abs(rows)])
        out = {"output_embedding": Bounded(np.hstack([b.value, rows]), b.terms, size)}
        return {**out, EXTREMA: exact(found.extrema)} if op.has_winner else out

    def back(a: Arrays) -> dict[str, Bounded]:
        g, mine = a["grad_output"][:, :width], a["grad_output"][:, width:]
        y = a.get("output_embedding")
        grad = backward(
            op, graph.offsets, g, extrema=a.get(EXTREMA),
            values=values(a) if op.is_spread else None, output=None if y is None else y[:, :width],
        )  # fmt: skip
        nodes, edges = (part_of(grad, c) for c in (slice(width - dim_edge), slice(-dim_edge, None)))
        found = {}
        if edge:
            found["grad_input_edge"] = gradient_of(graph, "edge", edges, graph.n_src)
        if not node:
            found["grad_input_node"] = Bounded(mine, 0, np.abs(mine))
            return found
        b = gradient_of(graph, "node", nodes, graph.n_src)
        added = np.zeros_like(b.value)
        added[: graph.n_dst] = mine
        name = "grad_input_node" if edge else "grad_input"
        found[name] = Bounded(b.value + added, b.terms + 1, b.magnitude + np.abs(added))
        return found

    operator, told = _operator(node, edge), {"dim_node": dim_node, "dim_edge": dim_edge}
    options = [
        {"aggregation_operation": op, **{k: told[k] for k in operator.sizes.get(half, ())}}
        for half in ("fwd", "bwd")
    ]
    yield Case(operator, "fwd", options[0], read, forward, kind="csc", without=(BATCH,))
    reads: dict[str, Any] = {"grad_output": rng.standard_normal((graph.n_dst, width + dim_node))}
    made = forward(read)
    if op.has_winner:
        reads[EXTREMA] = made[EXTREMA].value
    if op.is_spread:
        kept = {name: a for name, a in read.items() if name in operator.may_keep}
        reads |= kept | {"output_embedding": deviation(made["output_embedding"].value)}
    yield Case(operator, "bwd", options[1], reads, back, kind="csc", without=(BATCH,))
