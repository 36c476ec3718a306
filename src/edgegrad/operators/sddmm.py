"""Values of edges from the rows of their ends: declaration, public functions, host calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from edgegrad import _host
from edgegrad.backends import host
from edgegrad.errors import wrong_option, wrong_type, wrong_value
from edgegrad.graph import Graph, build
from edgegrad.interop import ArrayView
from edgegrad.operator import ABSENT, HEADS, Arg, Call, Operator, check
from edgegrad.operators import sddmm_plans

# Numbered as in kernels/common/edge_op.h.
OPS = ("dot", "add", "sub", "mul", "div", "copy_lhs", "copy_rhs")
ZERO, PLAIN, MINUS, TIMES, OVER, QUOTIENT = range(6)

# What the gradients of lhs and of rhs are sums of.
TERMS = {
    "dot": (TIMES, TIMES),
    "add": (PLAIN, PLAIN),
    "sub": (PLAIN, MINUS),
    "mul": (TIMES, TIMES),
    "div": (OVER, QUOTIENT),
    "copy_lhs": (PLAIN, ZERO),
    "copy_rhs": (ZERO, PLAIN),
}

SDDMM = Operator(
    name="sddmm",
    outputs=(Arg("output", ("n_indices", HEADS, "[dim_out]"), grad="grad_output"),),
    inputs=(
        Arg("lhs", ("n_dst_nodes", HEADS, "dim"), grad="grad_lhs", optional=True),
        Arg("rhs", ("n_src_nodes", HEADS, "dim"), grad="grad_rhs", optional=True),
    ),
    graphs=("csc", "bipartite_csc", "csc_hg", "bipartite_csc_hg"),
    keeps=("lhs", "rhs"),
    derived={"[dim_out]": lambda s: ABSENT if s["is_dot"] else s["dim"]},
    scratch="forward none; backward the partial sums of long rows (a row of the gradient per 4,096 "
    "edges on the host, 128 on a GPU, of a row longer than that)",
    source="Wang et al. 2019, arXiv:1909.01315, section 3 (generalised SDDMM)",
)
OPERATORS = (SDDMM,)
KERNELS = sddmm_plans.KERNELS


def sddmm_fwd(
    output: Any, lhs: Any, rhs: Any, graph: Graph, *, op: str = "dot", stream_id: int = 0
) -> None:
    r"""Write a value for every edge, made of the rows of its destination and of its source.

    .. math:: y_e = \langle l_i, r_j \rangle \quad\text{or}\quad y_e = l_i \circ r_j,
              \qquad e = (j \to i)

    With ``lhs`` the destinations' features v and ``rhs`` the sources' u, these are the message
    functions of DGL's tables: ``dot`` is u_dot_v, ``add`` u_add_v, ``mul`` u_mul_v, ``copy_rhs``
    copy_u; u_sub_v and u_div_v put the source first: negate ``sub``, or exchange the operands on
    the reverse graph. A message function followed by a reduction is ``sddmm_fwd`` into an edge
    array and the reduction of that array by destination. The products of spmm's values gradient
    and of attention scores are ``dot``.

    Parameters
    ----------
    output : array (n_indices, [heads], [dim_out]), T
        Written, in CSC order like `graph.indices`. ``dot`` reduces the last axis, which is then
        absent; for the other ops it is ``dim``.
    lhs : array (n_dst_nodes, [heads], dim), T, or None
        Rows of the destinations; None only for ``copy_rhs``.
    rhs : array (n_src_nodes, [heads], dim), T, or None
        Rows of the sources; None only for ``copy_lhs``.
    graph : csc, bipartite_csc, csc_hg or bipartite_csc_hg, int32 or int64
        Edges grouped by destination, on the device of the arrays.
    op : {"dot", "add", "sub", "mul", "div", "copy_lhs", "copy_rhs"}
        What is made of the two rows, by head and channel.
    stream_id : int
        CUDA stream handle the work goes on; 0 is the legacy default stream. Nothing synchronises.

    Raises
    ------
    ArgumentError
        If an array, the graph or an option is not as described; `TypeError` for kinds and dtypes,
        `ValueError` for shapes, layouts (heads must lie side by side), devices and values.

    Notes
    -----
    Dtypes: T is float16, bfloat16, float32 or float64; sums are kept in float32 (float64 for
    float64) and rounded once. Ids are int32 or int64. A destination without in-edges gets 0 rows
    of the output. Determinism: run-to-run, bitwise, for any number of threads. Scratch: none.
    Source: Wang et al. 2019, arXiv:1909.01315, section 3 (generalised SDDMM).
    """
    where = "sddmm_fwd"
    _check_op(where, op)
    _require(where, op, lhs=lhs, when=op != "copy_rhs")
    _require(where, op, rhs=rhs, when=op != "copy_lhs")
    given = {"output": output, "lhs": lhs, "rhs": rhs}
    call = _checked("fwd", graph, given, op, stream_id)
    arrays = (call.rows("output"), call.rows("lhs"), call.rows("rhs"))
    # Of one channel, a dot product is a product.
    code = OPS.index("mul" if op == "dot" and call.sizes["dim"] == 1 else op)
    if call.on_host:
        _host.sddmm_forward(*arrays, graph, code, call.n_heads, call.sizes["dim"])
    else:
        sddmm_plans.forward(call, graph, arrays, code, stream_id)


def sddmm_bwd(
    grad_lhs: Any,
    grad_rhs: Any,
    grad_output: Any,
    lhs: Any,
    rhs: Any,
    graph: Graph,
    *,
    op: str = "dot",
    stream_id: int = 0,
) -> None:
    r"""Write the gradients of `sddmm_fwd` that are asked for.

    .. math:: \bar l_i = \sum_{e = (j \to i)} \bar y_e \, \partial_l (l_i \circ r_j), \qquad
              \bar r_j = \sum_{e = (j \to i)} \bar y_e \, \partial_r (l_i \circ r_j)

    Parameters
    ----------
    grad_lhs : array (n_dst_nodes, [heads], dim), T, or None
        Written; 0 for a destination without in-edges, and everywhere for ``copy_rhs``.
    grad_rhs : array (n_src_nodes, [heads], dim), T, or None
        Written; 0 for a source without out-edges, and everywhere for ``copy_lhs``.
    grad_output : array (n_indices, [heads], [dim_out]), T
        Gradient of the output, in CSC order.
    lhs : array (n_dst_nodes, [heads], dim), T, or None
        As in forward; read for `grad_rhs` of ``dot``, ``mul`` and ``div``, else it may be None.
    rhs : array (n_src_nodes, [heads], dim), T, or None
        As in forward; read for `grad_lhs` of ``dot``, ``mul`` and ``div`` and for `grad_rhs` of
        ``div``, else it may be None.
    graph : csc, bipartite_csc, csc_hg or bipartite_csc_hg, int32 or int64
        The graph of the forward.
    op, stream_id
        As in forward.

    Raises
    ------
    ArgumentError
        As in forward.

    Notes
    -----
    Dtypes, accumulation and determinism as in forward: each gradient is gathered over the graph,
    `grad_rhs` over its reverse, which is built on first need; no atomics. All gradients None:
    nothing is done. Scratch: partial sums of rows longer than 4,096 edges (host) or 128 edges
    (GPU), a row of the gradient for each such run of edges; on the host, for half types, one row
    per thread. Second derivatives of ``dot`` are spmm and ``dot`` again.
    Source: Wang et al. 2019, arXiv:1909.01315, section 3 (generalised SDDMM).
    """
    where = "sddmm_bwd"
    _check_op(where, op)
    of_lhs, of_rhs = TERMS[op]
    _require(where, op, rhs=rhs, when=grad_lhs is not None and of_lhs >= TIMES)
    _require(where, op, lhs=lhs, when=grad_rhs is not None and of_rhs >= TIMES)
    _require(where, op, rhs=rhs, when=grad_rhs is not None and of_rhs == QUOTIENT)
    given = {
        "grad_lhs": grad_lhs,
        "grad_rhs": grad_rhs,
        "grad_output": grad_output,
        "lhs": lhs,
        "rhs": rhs,
    }
    call = _checked("bwd", graph, given, op, stream_id)
    views = {name: call.rows(name) for name in given}
    for side in ("lhs", "rhs"):
        if views[f"grad_{side}"] is not None:
            part = _gradient(call, graph, views, side, op, stream_id)
            run = _host_gradient if call.on_host else sddmm_plans.gradient
            run(call, graph, part, stream_id)


@dataclass(frozen=True)
class Gradient:
    """The gradient of one side: sums over a graph from its rows to the other side."""

    key: str  # of the cut of its long rows
    term: int
    result: ArrayView
    grad_output: ArrayView
    other: ArrayView | None
    own: ArrayView | None
    offsets: ArrayView
    other_end: ArrayView
    position: ArrayView | None  # of an edge in grad_output; None: where it is
    per_head: int  # channels that share an edge's gradient


def _gradient(
    call: Call, graph: Graph, views: dict[str, Any], side: str, op: str, stream_id: int
) -> Gradient:
    term = TERMS[op][side == "rhs"]
    per_head = call.sizes["dim"] if op == "dot" else 1
    lhs, rhs, grad_output = views["lhs"], views["rhs"], views["grad_output"]
    if side == "lhs":
        ends = (graph.offsets, graph.indices, None)
        return Gradient("rows", term, views["grad_lhs"], grad_output, rhs, lhs, *ends, per_head)
    rev = build.reverse(graph, stream_id)
    ends = (rev.offsets, rev.dst, rev.position)
    return Gradient("reverse", term, views["grad_rhs"], grad_output, lhs, rhs, *ends, per_head)


def _host_gradient(_: Call, graph: Graph, g: Gradient, __: int) -> None:
    cut = build.pieces(graph, g.key, g.offsets, host.PIECE_EDGES)
    _host.sddmm_gradient(
        g.result, g.grad_output, g.other, g.own, g.offsets, g.other_end, g.position,
        g.term, g.per_head, cut.limit, cut.row, cut.begin, cut.end,
    )  # fmt: skip


def _checked(half: Any, graph: Any, given: dict[str, Any], op: str, stream_id: int) -> Call:
    call = check(SDDMM, half, graph, given, sizes={"is_dot": op == "dot"}, stream_id=stream_id)
    if call.sizes.get(HEADS) == 0:
        name = next(name for name, a in call.arrays.items() if a is not None)
        raise wrong_value(call.where, name, "n_heads = 0", "at least one head")
    return call


def _check_op(where: str, op: Any) -> None:
    if op not in OPS:
        raise wrong_option(where, "op", op, " or ".join(map(repr, OPS)))


def _require(where: str, op: str, *, when: bool, **operand: Any) -> None:
    ((name, array),) = operand.items()
    if when and array is None:
        raise wrong_type(where, name, "type NoneType", f"an array, since `op` is {op!r}")
