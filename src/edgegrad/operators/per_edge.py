"""What is written for every edge: rows put together from those of its ends, and dot products."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from edgegrad import _host
from edgegrad.interop import ArrayView
from edgegrad.operators import per_edge_plans
from edgegrad.operators.edges import Edges


@dataclass(slots=True)
class Operands:
    """What an edge's row is the sum of; None is left out.

    With `extrema` it is the part of `row` that the edge won, with `centre` the gradient of a
    variance (or of a standard deviation, `deviation`) of which `edge` is one value.
    """

    row: ArrayView | None = None  # by the row of the edge,
    divide: ArrayView | None = None  # over this divisor of it
    source: ArrayView | None = None  # by the row that the edge reads
    edge: ArrayView | None = None  # by edge id
    extrema: ArrayView | None = None
    centre: ArrayView | None = None
    deviation: ArrayView | None = None
    subtrahend: ArrayView | None = None  # by edge id; rows to take away:
    list: ArrayView | None = None  # that of each edge (-1: none), or with offsets several
    list_offsets: ArrayView | None = None


def expand(edges: Edges, output: ArrayView, stream_id: int, **operands: Any) -> None:
    """Write the row of every edge id."""
    o = Operands(**operands)
    if output.device != "cpu":
        per_edge_plans.expand(edges, output, o, stream_id)
        return
    _host.expand(
        edges.native, edges.wide, output, o.row, o.source, o.edge, o.divide, o.extrema, o.centre,
        o.deviation, o.subtrahend, o.list_offsets, o.list,
    )  # fmt: skip


def grad_factor(
    edges: Edges,
    result: ArrayView,
    grad: ArrayView,
    values: ArrayView,
    stream_id: int,
    *,
    heads: int = 1,
    extrema: ArrayView | None = None,
    divide: ArrayView | None = None,
    mean: ArrayView | None = None,
) -> None:
    """Write the gradient of every edge's factors, by CSC position.

    It is <grad[row], values[read] - mean[row]> over `divide`, or over the columns the edge won;
    summed over the batch.
    """
    if result.device != "cpu":
        per_edge_plans.grad_factor(
            edges, result, grad, values, heads, extrema, divide, mean, stream_id
        )
        return
    _host.grad_factor(edges.native, edges.wide, result, heads, grad, values, extrema, divide, mean)
