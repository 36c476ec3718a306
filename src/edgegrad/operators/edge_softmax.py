"""Softmax of edge logits by destination: declaration, public functions, host calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from edgegrad import _host
from edgegrad.backends import host
from edgegrad.errors import wrong_option, wrong_value
from edgegrad.graph import Graph, build
from edgegrad.interop import ArrayView
from edgegrad.operator import HEADS, Arg, Call, Operator, check
from edgegrad.operators import edge_softmax_plans

SCOPES = ("dst", "dst_and_type")

EDGE_SOFTMAX = Operator(
    name="edge_softmax",
    outputs=(Arg("output", ("n_indices", HEADS), grad="grad_output"),),
    inputs=(Arg("logits", ("n_indices", HEADS), grad="grad_logits"),),
    graphs=("csc", "bipartite_csc", "csc_hg", "bipartite_csc_hg"),
    keeps=("output",),
    scratch="two accumulators (backward one) by head per 4,096 edges on the host, 128 on a GPU, of "
    "a row longer than that; on the host, as many per thread",
    source="Velickovic et al. 2018, arXiv:1710.10903, eq. 3; Busbridge et al. 2019, "
    "arXiv:1904.05811, section 2.2 (per type)",
)
OPERATORS = (EDGE_SOFTMAX,)
KERNELS = edge_softmax_plans.KERNELS


def edge_softmax_fwd(
    output: Any, logits: Any, graph: Graph, *, scope: str = "dst", stream_id: int = 0
) -> None:
    r"""Normalise the logits of the edges that enter a destination to coefficients that add to 1.

    .. math:: y_e = \frac{\exp(x_e - m_e)}{\sum_{k \in N(e)} \exp(x_k - m_e)}, \qquad
              m_e = \max_{k \in N(e)} x_k

    where N(e) are the edges with the destination of e and, for ``dst_and_type``, also its type.

    Parameters
    ----------
    output : array (n_indices, [heads]), T
        Written, in CSC order like `graph.indices`.
    logits : array (n_indices, [heads]), T
        In CSC order. -inf is legal: its coefficient is 0.
    graph : csc, bipartite_csc, csc_hg or bipartite_csc_hg, int32 or int64
        Edges grouped by destination, on the device of the arrays.
    scope : {"dst", "dst_and_type"}
        Over which edges coefficients add to 1: all that enter a destination, or those of one type
        that do; the latter needs a graph with edge types.
    stream_id : int
        CUDA stream handle the work goes on; 0 is the legacy default stream. Nothing synchronises.

    Raises
    ------
    ArgumentError
        If an array, the graph or an option is not as described; `TypeError` for kinds and dtypes,
        `ValueError` for shapes, layouts, devices and values.

    Notes
    -----
    Dtypes: T is float16, bfloat16, float32 or float64; exponentials and sums are kept in float32
    (float64 for float64) and rounded once. Ids are int32 or int64. A destination without in-edges
    gets 0 rows of the output. The maximum is that of each destination and head, so no other row
    changes a bit of this one. NaN or +inf among the logits of N(e) makes all its coefficients NaN,
    and so does -inf everywhere in N(e), as in torch, PyG and DGL: no weights are the softmax of
    nothing; leave masked edges out of the graph where a whole row may be masked.
    Determinism: run-to-run, bitwise, for any number of threads.
    Scratch: for rows longer than 4,096 edges (host) or 128 edges (GPU), two accumulators by head
    for each such run of edges; on the host, as many per thread; never an array by edge. The first
    call on a graph may build what it needs of it (groups by type, cuts of long rows).
    Source: Velickovic et al. 2018, arXiv:1710.10903, eq. 3; Busbridge et al. 2019,
    arXiv:1904.05811, section 2.2 (per type).
    """
    given = {"output": output, "logits": logits}
    call = _checked("fwd", graph, given, scope, stream_id)
    arrays = tuple(call.rows(name) for name in given)
    if call.on_host:
        _host.edge_softmax_forward(*arrays, *_host_rows(graph, scope))
    else:
        edge_softmax_plans.forward(call, graph, Rows.of(graph, scope, stream_id), arrays, stream_id)


def edge_softmax_bwd(
    grad_logits: Any,
    grad_output: Any,
    output: Any,
    graph: Graph,
    *,
    scope: str = "dst",
    stream_id: int = 0,
) -> None:
    r"""Write the gradient of `edge_softmax_fwd`, if it is asked for.

    .. math:: \bar x_e = y_e \Big(\bar y_e - \sum_{k \in N(e)} y_k \bar y_k\Big)

    Parameters
    ----------
    grad_logits : array (n_indices, [heads]), T, or None
        Written, in CSC order.
    grad_output : array (n_indices, [heads]), T
        Gradient of the output, in CSC order.
    output : array (n_indices, [heads]), T
        What forward wrote.
    graph : csc, bipartite_csc, csc_hg or bipartite_csc_hg, int32 or int64
        The graph of the forward.
    scope, stream_id
        As in forward.

    Raises
    ------
    ArgumentError
        As in forward.

    Notes
    -----
    Dtypes, accumulation and determinism as in forward. A gradient of None: nothing is done.
    Scratch as in forward, one accumulator instead of two. Second derivatives follow from this
    formula by products of edge arrays and sums by destination.
    Source: Velickovic et al. 2018, arXiv:1710.10903, eq. 3; Busbridge et al. 2019,
    arXiv:1904.05811, section 2.2 (per type).
    """
    given = {"grad_logits": grad_logits, "grad_output": grad_output, "output": output}
    call = _checked("bwd", graph, given, scope, stream_id)
    if grad_logits is None:
        return
    arrays = tuple(call.rows(name) for name in given)
    if call.on_host:
        _host.edge_softmax_backward(*arrays, *_host_rows(graph, scope))
    else:
        edge_softmax_plans.backward(
            call, graph, Rows.of(graph, scope, stream_id), arrays, stream_id
        )


@dataclass(frozen=True)
class Rows:
    """The edges that a scope normalises together."""

    key: str  # of the cut of long ones
    offsets: ArrayView
    order: ArrayView | None  # CSC position of each edge; None: they are in CSC order

    @classmethod
    def of(cls, graph: Graph, scope: str, stream_id: int = 0) -> Rows:
        """Rows of a graph, building groups by type on first need."""
        if scope == "dst":
            return cls("rows", graph.offsets, None)
        groups = build.type_groups(graph, stream_id)
        return cls("groups", groups.offsets, groups.order)


def _host_rows(graph: Graph, scope: str) -> tuple[Any, ...]:
    rows = Rows.of(graph, scope)
    cut = build.pieces(graph, rows.key, rows.offsets, host.PIECE_EDGES)
    return rows.offsets, rows.order, cut.limit, cut.row, cut.begin, cut.end


def _checked(half: Any, graph: Any, given: dict[str, Any], scope: str, stream_id: int) -> Call:
    where = f"edge_softmax_{half}"
    if scope not in SCOPES:
        raise wrong_option(where, "scope", scope, " or ".join(map(repr, SCOPES)))
    call = check(EDGE_SOFTMAX, half, graph, given, stream_id=stream_id)
    if scope == "dst_and_type" and "hg" not in graph.kind:
        raise wrong_option(where, "scope", scope, "'dst', since the graph has no edge types")
    if call.sizes.get(HEADS) == 0:
        name = next(name for name, a in call.arrays.items() if a is not None)
        raise wrong_value(where, name, "n_heads = 0", "at least one head")
    return call
