"""The gather-reduce that every aggregation is made of, and what each `AggOp` makes of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from edgegrad import _host
from edgegrad.backends import scratch
from edgegrad.graph import Graph
from edgegrad.interop import ArrayView
from edgegrad.operators import gather_reduce_plans, per_edge
from edgegrad.operators.agg_op import AggOp
from edgegrad.operators.edges import Edges


class Reducer(IntEnum):
    """What becomes of the rows that a row's edges read; `GatherReduce::Reducer` natively."""

    SUM = 0  # of k x
    EXTREMUM = 1  # the largest of k x, or the smallest, and its place
    WINNER = 2  # sum of k x over the columns in which the edge was the extremum
    SQUARES = 3  # sum of (x - centre)^2
    SPREAD = 4  # gradient of a variance or standard deviation


@dataclass(slots=True)
class Options:
    """What a gather-reduce does beside summing; arrays that are not used are None.

    The factor k of an edge is its `weight` (one for each of `heads` side by side) over the divisor
    `gathered` of the row it reads. Each result is divided by the row's `divide`. Divisors are
    offsets, whose differences count edges, or sums; nothing passes a divisor of 0.
    """

    reducer: Reducer = Reducer.SUM
    sign: float = 1.0  # -1 turns the largest into the smallest
    root: bool = False  # square root of each result
    extrema: ArrayView | None = None  # CSC positions: written by EXTREMUM, read by WINNER
    weight: ArrayView | None = None
    heads: int = 1
    divide: ArrayView | None = None
    gathered: ArrayView | None = None
    start: ArrayView | None = None  # what the sums of the first rows begin with
    start_ids: ArrayView | None = None  # the row of `start` for each of those; None: the same row
    start_rows: int = 0
    centre: ArrayView | None = None  # means, in accumulators
    deviation: ArrayView | None = None  # standard deviations
    own: ArrayView | None = None  # SPREAD: the values of the rows


def reduce(
    edges: Edges,
    output: ArrayView,
    input: ArrayView | None,
    stream_id: int,
    **options: Any,
) -> None:
    """Write one row of `output` for each row of `edges`, from the rows of `input` they read."""
    o = Options(**options)
    if output.device != "cpu":
        gather_reduce_plans.run(edges, output, input, o, stream_id)
        return
    _host.gather_reduce(
        int(o.reducer), edges.native, edges.wide, output, input, o.sign, o.root, o.extrema,
        o.weight, o.heads, o.divide, o.gathered, o.start, o.start_ids, o.start_rows, o.centre,
        o.deviation, o.own,
    )  # fmt: skip


def copy_rows(output: ArrayView, rows: ArrayView, graph: Graph, stream_id: int) -> None:
    """Write every row of `output`, the row of the same number of `rows`."""
    edges = Edges(output.shape[-2], 0, graph.index_dtype)
    reduce(edges, output, None, stream_id, start=rows, start_rows=edges.rows)


def aggregate(
    op: AggOp,
    edges: Edges,
    output: ArrayView,
    values: ArrayView,
    stream_id: int,
    *,
    extrema: ArrayView | None = None,
    weight: ArrayView | None = None,
    heads: int = 1,
    divide: ArrayView | None = None,
) -> None:
    """Write the aggregate of the values that each row's edges read.

    A mean divides by `divide`, by the number of edges if that is None.
    """
    given = {"weight": weight, "heads": heads}
    if op.has_winner:
        sign = 1.0 if op is AggOp.Max else -1.0
        kind = Reducer.EXTREMUM
        reduce(edges, output, values, stream_id, reducer=kind, sign=sign, extrema=extrema, **given)
    elif op.is_spread:
        centre = means(edges, output, values, stream_id)
        reduce(
            edges, output, values, stream_id, reducer=Reducer.SQUARES, centre=centre,
            divide=edges.offsets, root=op is AggOp.Std,
        )  # fmt: skip
    else:
        if op is AggOp.Mean and divide is None:
            divide = edges.offsets
        divide = divide if op is AggOp.Mean else None
        reduce(edges, output, values, stream_id, divide=divide, **given)


def means(edges: Edges, output: ArrayView, values: ArrayView, stream_id: int) -> ArrayView:
    """Return the mean of the values each row's edges read, in accumulators."""
    centre = scratch.accumulators(values, output.shape, stream_id)
    reduce(edges, centre, values, stream_id, divide=edges.offsets)
    return centre


def row_sums(
    edges: Edges, weight: ArrayView, stream_id: int, output: ArrayView | None = None
) -> ArrayView:
    """Return the sum of the weights of each row's edges, in `output` or in new accumulators."""
    if output is None:
        output = scratch.accumulators(weight, (edges.rows,), stream_id)
    reduce(edges, output.as_column(), weight.as_column(), stream_id)
    return output


@dataclass(slots=True)
class Back:
    """What the gradient of an aggregate needs of its forward call, by option."""

    extrema: ArrayView | None = None
    divide: ArrayView | None = None  # a mean's divisor, if not the number of edges
    values: ArrayView | None = None  # variance: what was aggregated,
    centre: ArrayView | None = None  # its means,
    deviation: ArrayView | None = None  # and the output, if that is a standard deviation


def back(
    op: AggOp,
    edges: Edges,
    grad_output: ArrayView,
    stream_id: int,
    *,
    extrema: ArrayView | None = None,
    divide: ArrayView | None = None,
    values: ArrayView | None = None,
    output: ArrayView | None = None,
) -> Back:
    """Collect what gradients of an aggregate over `edges` need; arrays it does not are dropped."""
    if op.is_spread:
        assert values is not None  # by check_kept
        centre = means(edges, grad_output, values, stream_id)
        deviation = output if op is AggOp.Std else None
        return Back(divide=edges.offsets, values=values, centre=centre, deviation=deviation)
    if op is AggOp.Mean:
        return Back(divide=edges.offsets if divide is None else divide)
    return Back(extrema=extrema)


def grad_nodes(
    edges: Edges,
    result: ArrayView,
    grad_output: ArrayView,
    kept: Back,
    stream_id: int,
    *,
    weight: ArrayView | None = None,
    heads: int = 1,
    own: ArrayView | None = None,
    own_rows: int = 0,
) -> None:
    """Write the gradient of the nodes that edges read; `edges` is grouped by those.

    `own` is added to the first `own_rows` rows.
    """
    options: dict[str, Any] = {"start": own, "start_rows": own_rows}
    if kept.centre is not None:
        options.update(
            reducer=Reducer.SPREAD, centre=kept.centre, deviation=kept.deviation, own=kept.values
        )
    elif kept.extrema is not None:
        options.update(reducer=Reducer.WINNER, extrema=kept.extrema)
    options.update(weight=weight, heads=heads, gathered=kept.divide)
    reduce(edges, result, grad_output, stream_id, **options)


def grad_edges(
    edges: Edges, result: ArrayView, grad_output: ArrayView, kept: Back, stream_id: int
) -> None:
    """Write the gradient of the edge rows that were aggregated; `edges` is as in forward."""
    per_edge.expand(
        edges, result, stream_id, row=grad_output, divide=kept.divide, extrema=kept.extrema,
        edge=kept.values, centre=kept.centre, deviation=kept.deviation,
    )  # fmt: skip
