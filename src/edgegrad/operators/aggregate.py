"""What agg_simple and agg_concat share: an output whose columns aggregate nodes, edges, or both."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from edgegrad.errors import wrong_value
from edgegrad.graph import Graph
from edgegrad.interop import ArrayView
from edgegrad.operator import Arg, Call, Operator, check
from edgegrad.operators.agg_op import AggOp, agg_op, check_extrema, check_kept
from edgegrad.operators.edges import Reads, incoming, outgoing
from edgegrad.operators.gather_reduce import (
    aggregate,
    back,
    copy_rows,
    grad_edges,
    grad_nodes,
)

EXTREMA = "output_extrema_location"
GRAPHS = ("csc", "bipartite_csc", "csc_hg", "bipartite_csc_hg")
SOURCE = "Hamilton et al. 2017, arXiv:1706.02216; var and std: Corso et al. 2020, arXiv:2004.05718"
SCRATCH = "partial sums of long rows; var and std: the means, n_dst_nodes x dim"


def extrema_arg(*axes: str) -> Arg:
    """Declare where the winners are: written by forward, read by backward."""
    return Arg(EXTREMA, axes, dtype="Idx", optional=True, keyword=True)


@dataclass(frozen=True)
class Layout:
    """The inputs of an output's columns: aggregated nodes, aggregated edges, own rows."""

    node: str = ""
    edge: str = ""
    own: str = ""

    @cached_property
    def aggregated(self) -> tuple[str, ...]:
        """Names of the inputs that are aggregated."""
        return tuple(name for name in (self.node, self.edge) if name)

    def reads(self, name: str) -> Reads:
        """Say what the edges that aggregate an input read."""
        return "node" if name == self.node else "edge"


@dataclass(slots=True)
class _Part:
    """Columns of an output that are made of one input."""

    name: str
    begin: int
    width: int

    def of(self, array: ArrayView | None) -> Any:
        if array is None or self.width == array.shape[-1]:
            return array
        return array.columns(self.begin, self.width)


def _parts(operator: Operator, layout: Layout, call: Call) -> tuple[list[_Part], _Part | None]:
    """Return the aggregated parts of the output, and the own rows' part."""
    axis = {x.name: x.axes[-1] for x in operator.inputs}
    sizes, names = call.sizes, [*layout.aggregated, *([layout.own] if layout.own else [])]
    known = sum(sizes.get(axis[name], 0) for name in names)
    # The width of an input none of whose arrays is given is what the others leave.
    rest = sizes.get("dim_out", known) - known
    if rest < 0:
        has = f"shape {call.arrays['grad_output'].shape}"
        raise wrong_value(call.where, "grad_output", has, f"at least {known} columns")
    parts, begin = [], 0
    for name in names:
        parts.append(_Part(name, begin, sizes.get(axis[name], rest)))
        begin += parts[-1].width
    return (parts[:-1], parts[-1]) if layout.own else (parts, None)


def forward(
    operator: Operator,
    layout: Layout,
    given: dict[str, Any],
    graph: Graph,
    operation: AggOp | str,
    stream_id: int,
    **sizes: int,
) -> None:
    """Check a forward call and make it."""
    where = f"{operator.name}_fwd"
    op = agg_op(where, "aggregation_operation", operation)
    check_extrema(where, EXTREMA, op, given[EXTREMA])
    call = check(operator, "fwd", graph, given, sizes, stream_id)
    a, output = call.arrays, call.arrays["output_embedding"]
    parts, own = _parts(operator, layout, call)
    for part in parts:
        edges = incoming(graph, layout.reads(part.name), stream_id)
        extrema = part.of(a[EXTREMA])
        aggregate(op, edges, part.of(output), a[part.name], stream_id, extrema=extrema)
    if own is not None:
        copy_rows(own.of(output), a[own.name], graph, stream_id)


def backward(
    operator: Operator,
    layout: Layout,
    given: dict[str, Any],
    graph: Graph,
    operation: AggOp | str,
    stream_id: int,
    **sizes: int,
) -> None:
    """Check a backward call and write the gradients asked for."""
    where = f"{operator.name}_bwd"
    op = agg_op(where, "aggregation_operation", operation)
    check_extrema(where, EXTREMA, op, given[EXTREMA])
    grads = {x.name: x.grad for x in operator.inputs if given[x.grad] is not None}
    values = {name: given[name] for name in layout.aggregated if name in grads}
    check_kept(where, op, values, {"output_embedding": given["output_embedding"]})
    call = check(operator, "bwd", graph, given, sizes, stream_id)
    a, g = call.arrays, call.arrays["grad_output"]
    parts, own = _parts(operator, layout, call)
    for part in parts:
        if part.name not in grads:
            continue
        result, reads = a[grads[part.name]], layout.reads(part.name)
        edges = incoming(graph, reads, stream_id)
        kept = back(
            op, edges, part.of(g), stream_id, extrema=part.of(a[EXTREMA]), values=a[part.name],
            output=part.of(a["output_embedding"]),
        )  # fmt: skip
        if reads == "edge":
            grad_edges(edges, result, part.of(g), kept, stream_id)
            continue
        adds = own.of(g) if own is not None and own.name == part.name else None
        out_of = outgoing(graph, reads, stream_id)
        n = graph.n_dst_nodes
        grad_nodes(out_of, result, part.of(g), kept, stream_id, own=adds, own_rows=n)
    if own is not None and own.name != layout.node and own.name in grads:
        copy_rows(a[grads[own.name]], own.of(g), graph, stream_id)
