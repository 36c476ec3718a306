"""pool_n2s: aggregates of runs of nodes; the offsets of a graph serve as those of a batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from edgegrad import AggOp
from edgegrad.operators.pool import POOL_N2S
from graphs import GraphData
from reference import Arrays, Case
from reference.agg_simple import EXTREMA, deviation
from reference.aggregation import aggregate, backward, exact
from tolerances import Bounded


def cases(graph: GraphData, rng: np.random.Generator, dim: int = 5) -> Iterator[Case]:
    """Every operation, both halves."""
    for op in AggOp:
        yield from _pair(graph.offsets, rng, op, dim)


def _pair(offsets: np.ndarray, rng: np.random.Generator, op: AggOp, dim: int) -> Iterator[Case]:
    def forward(a: Arrays) -> dict[str, Bounded]:
        found = aggregate(op, offsets, a["input"])
        out = {"output": found.bounded}
        return {**out, EXTREMA: exact(found.extrema)} if op.has_winner else out

    def back(a: Arrays) -> dict[str, Bounded]:
        grad = backward(
            op, offsets, a["grad_output"], extrema=a.get(EXTREMA), values=a.get("input"),
            output=a.get("output"),
        )  # fmt: skip
        most = int(np.diff(offsets).max(initial=0))
        return {"grad_input": Bounded(grad.value, most + 2, grad.size)}

    options = {"aggregation_operation": op}
    x = rng.standard_normal((int(offsets[-1]), dim))
    read = {"input": x, "node_offsets": offsets}
    yield Case(POOL_N2S, "fwd", options, read, forward)
    made = forward(read)
    g = rng.standard_normal((len(offsets) - 1, dim))
    reads: dict[str, Any] = {"grad_output": g, "node_offsets": offsets}
    if op.has_winner:
        reads[EXTREMA] = made[EXTREMA].value
    if op.is_spread:
        reads |= {"input": x, "output": deviation(made["output"].value)}
    yield Case(POOL_N2S, "bwd", options, reads, back)
