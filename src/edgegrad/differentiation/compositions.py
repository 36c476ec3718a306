"""Operators as compositions of others that have derivatives of any order.

They need memory per edge, which the operators themselves do not: O(n_indices * num_heads) for GAT,
O(n_indices * dim) for GATv2 and for edge features. Only second derivatives are taken of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from edgegrad.differentiation.front import Front
from edgegrad.differentiation.registry import Options, derivatives

Composition = Callable[[Front, Any, Options, Mapping[str, Any]], dict[str, Any]]


def _sddmm(front: Front, graph: Any, op: str, lhs: Any, rhs: Any) -> Any:
    return front.forward(derivatives("sddmm"), graph, {"op": op}, {"lhs": lhs, "rhs": rhs})


def _quotient(front: Front, graph: Any, options: Options, a: Mapping[str, Any]) -> dict[str, Any]:
    """sddmm with ``op="div"``."""
    del options
    return {"output": _sddmm(front, graph, "mul", a["lhs"], 1 / a["rhs"])}


def _heads(a: Any, heads: int) -> Any:
    return a.reshape(a.shape[0], heads, a.shape[1] // heads)


def _activation(front: Front, name: str, alpha: float, z: Any) -> Any:
    """The activations of kernels/common/activation.h."""
    if name == "linear":
        return z
    if name == "scalar":
        return alpha * z
    if name == "sigmoid":
        return 0.5 * (front.tanh(0.5 * z) + 1)
    if name == "tanh":
        return front.tanh(z)
    if name == "elu":  # exp is only taken below 0, where it cannot overflow
        return front.where(z > 0, z, front.exp(front.where(z > 0, 0 * z, z)) - 1)
    return front.where(z > 0, z, (0.0 if name == "relu" else alpha) * z)


def _attend(
    front: Front,
    graph: Any,
    options: Options,
    a: Mapping[str, Any],
    logits: Any,
    value: Any,
    edge_value: Any,
) -> dict[str, Any]:
    """Sum values by the softmax of logits; edge arrays are in CSC order, bias and mask by id."""
    heads = options["num_heads"]
    if a["edge_bias"] is not None:
        logits = logits + front.by_position(graph, a["edge_bias"])
    # A destination whose edges are all masked has coefficients of 0, not the softmax of nothing.
    masked = logits == -float("inf")
    softmax, spmm = derivatives("edge_softmax"), derivatives("spmm")
    finite = front.where(masked, 0 * front.ones(logits.shape, logits) - 1e30, logits)
    alpha = front.forward(softmax, graph, softmax.defaults, {"logits": finite})
    alpha = front.where(masked, 0 * alpha, alpha)
    if a["dropout_mask"] is not None:
        alpha = alpha * _factors(front, graph, options, a["dropout_mask"], alpha)
    out = front.forward(spmm, graph, spmm.defaults, {"values": alpha, "dense": value})
    if edge_value is not None:
        edges = derivatives("agg_simple_e2n")
        weighed = alpha[:, :, None] * _heads(edge_value, heads)
        by_id = front.by_id(graph, weighed.reshape(edge_value.shape))
        out = out + front.forward(edges, graph, edges.defaults, {"input_embedding": by_id})
    if not options["concat_heads"]:
        out = _heads(out, heads).sum(1) / heads
    return {"output_embedding": out, "attention": front.by_id(graph, alpha).T}


def _factors(front: Front, graph: Any, options: Options, mask: Any, like: Any) -> Any:
    """The dropout factors of every edge and head, in CSC order."""
    p = options["dropout_p"]
    scale = 1.0 if str(mask.dtype) not in ("bool", "torch.bool") else (1 / (1 - p) if p < 1 else 0)
    return front.by_position(graph, front.cast(mask, like).T) * scale


def _ends(a: Mapping[str, Any], front: Front, graph: Any) -> tuple[Any, Any]:
    """Features of sources and of destinations, which may be the first sources."""
    src, dst = a["src_embedding"], a["dst_embedding"]
    return src, src[: front.counts(graph)["n_dst_nodes"]] if dst is None else dst


def _gat(front: Front, graph: Any, options: Options, a: Mapping[str, Any]) -> dict[str, Any]:
    heads, (src, dst) = options["num_heads"], _ends(a, front, graph)
    width, w, edge = src.shape[1], a["attn_weights"], a["edge_embedding"]
    parts = (w[:width], w[width : 2 * width], w[2 * width :])
    of_src, of_dst = (
        _heads(x * part, heads).sum(2) for x, part in zip((src, dst), parts[:2], strict=True)
    )
    z = _sddmm(front, graph, "add", of_dst, of_src)
    if edge is not None:
        z = z + front.by_position(graph, _heads(edge * parts[2], heads).sum(2))
    logits = _activation(front, options["activation"], options["activation_alpha"], z)
    return _attend(front, graph, options, a, logits, src, None)


def _gat_v2(front: Front, graph: Any, options: Options, a: Mapping[str, Any]) -> dict[str, Any]:
    heads, (src, dst) = options["num_heads"], _ends(a, front, graph)
    z = _sddmm(front, graph, "add", dst, src)
    if a["edge_embedding"] is not None:
        z = z + front.by_position(graph, a["edge_embedding"])
    act = _activation(front, options["activation"], options["activation_alpha"], z)
    logits = _heads(act * a["attn_weights"], heads).sum(2)
    return _attend(front, graph, options, a, logits, src, None)


def _dot(front: Front, graph: Any, options: Options, a: Mapping[str, Any]) -> dict[str, Any]:
    heads, edge = options["num_heads"], a["edge_embedding"]
    query, key = (_heads(a[name], heads) for name in ("query", "key"))
    logits = _sddmm(front, graph, "dot", query, key)
    if edge is not None:
        edge = front.by_position(graph, edge)
        of_dst = _sddmm(front, graph, "copy_lhs", a["query"], None)
        logits = logits + _heads(of_dst * edge, heads).sum(2)
    if options["norm_by_dim"] and query.shape[2]:
        logits = logits / query.shape[2] ** 0.5
    return _attend(front, graph, options, a, logits, a["value"], edge)


COMPOSITIONS: dict[str, Composition] = {
    "sddmm": _quotient,
    "mha_gat_n2n": _gat,
    "mha_gat_v2_n2n": _gat_v2,
    "mha_simple_n2n": _dot,
}
