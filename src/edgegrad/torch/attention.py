"""`mha_gat` and `mha_gat_v2` as `cudnn.gnn` publishes them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from edgegrad.differentiation import Derivatives, derivatives
from edgegrad.errors import flag, wrong_type
from edgegrad.torch.csc_graph import CscGraph
from edgegrad.torch.functions import call

Output = Tensor | tuple[Tensor, Tensor]
_HALVES = (torch.float16, torch.bfloat16)


def mha_gat(
    graph: CscGraph,
    features: Tensor | tuple[Tensor, Tensor],
    attn_weights: Tensor,
    *,
    edge_features: Tensor | None = None,
    dropout_mask: Tensor | None = None,
    num_heads: int = 1,
    concat_heads: bool = True,
    activation: str = "leaky_relu",
    activation_alpha: float = 0.2,
    return_attention_weights: bool = False,
    deterministic: bool = False,
    high_precision_dgrad: bool = False,
    high_precision_wgrad: bool = False,
) -> Output:
    """Apply multi-head graph attention (GAT).

    Parameters
    ----------
    graph : CscGraph
        Edges grouped by destination, on the device of the tensors.
    features : Tensor (num_src_nodes, dim_node), or a tuple of that and (num_dst_nodes, dim_node)
        Features of the sources, and of the destinations; without those, destinations are the first
        sources. float16, bfloat16, float32 or float64; dim_node is a multiple of `num_heads`.
    attn_weights : Tensor (2 * dim_node + dim_edge)
        Source, destination and edge part; the dtype of the features, or float32 beside half types.
    edge_features : Tensor (num_edges, dim_edge), or None
        By edge id: the order of the caller's edges where the graph has a map. dim_edge is a
        multiple of `num_heads`.
    dropout_mask : Tensor (num_heads, num_edges), float32, or None
        By edge id: 0 for a coefficient that is dropped, 1 / (1 - p) for one that is kept.
        Not differentiated.
    num_heads : int
        Heads, at least 1.
    concat_heads : bool
        Set heads side by side, rather than average them.
    activation : str
        "linear", "relu", "sigmoid", "tanh", "elu", "scalar" or "leaky_relu".
    activation_alpha : float
        Slope of leaky_relu below 0, factor of scalar; any value.
    return_attention_weights : bool
        Return the coefficients of the sum too.
    deterministic : bool
        Accepted: gradients are deterministic in any case.
    high_precision_dgrad, high_precision_wgrad : bool
        Compute the gradients of features, of weights, in float32 where they are of half type.

    Returns
    -------
    Tensor (num_dst_nodes, dim_node), or (num_dst_nodes, dim_node / num_heads) if averaged
        With the coefficients, Tensor (num_heads, num_edges), float32 (float64 for float64), by edge
        id, after softmax and dropout, if asked for. Both have gradients, of second order too: those
        go through a composition of sddmm, edge_softmax and spmm with O(num_edges * num_heads)
        numbers in memory.

    Raises
    ------
    ArgumentError
        If an argument is not as described.
    """
    high = {
        "src_embedding": flag("mha_gat", "high_precision_dgrad", high_precision_dgrad),
        "attn_weights": flag("mha_gat", "high_precision_wgrad", high_precision_wgrad),
    }
    high["dst_embedding"] = high["edge_embedding"] = high["src_embedding"]
    flag("mha_gat", "deterministic", deterministic)
    return _attend(
        derivatives("mha_gat_n2n"), graph, features, attn_weights, edge_features, dropout_mask,
        (num_heads, activation, activation_alpha, concat_heads), return_attention_weights, high,
    )  # fmt: skip


def mha_gat_v2(
    graph: CscGraph,
    features: Tensor | tuple[Tensor, Tensor],
    attn_weights: Tensor,
    *,
    edge_features: Tensor | None = None,
    dropout_mask: Tensor | None = None,
    num_heads: int = 1,
    concat_heads: bool = True,
    activation: str = "leaky_relu",
    activation_alpha: float = 0.2,
    return_attention_weights: bool = False,
    deterministic: bool = False,
    high_precision_grad: bool = False,
) -> Output:
    """Apply multi-head graph attention of the second kind (GATv2).

    Parameters and result are those of `mha_gat`, but for

    Parameters
    ----------
    attn_weights : Tensor (dim_node,)
        Weights of the score; the dtype of the features, or float32 beside half types.
    edge_features : Tensor (num_edges, dim_node), or None
        By edge id.
    high_precision_grad : bool
        Compute all gradients in float32 where they are of half type.
    """
    high = flag("mha_gat_v2", "high_precision_grad", high_precision_grad)
    flag("mha_gat_v2", "deterministic", deterministic)
    names = ("src_embedding", "dst_embedding", "attn_weights", "edge_embedding")
    return _attend(
        derivatives("mha_gat_v2_n2n"), graph, features, attn_weights, edge_features, dropout_mask,
        (num_heads, activation, activation_alpha, concat_heads), return_attention_weights,
        dict.fromkeys(names, high),
    )  # fmt: skip


def _attend(
    d: Derivatives,
    graph: CscGraph,
    features: Any,
    attn_weights: Tensor,
    edge_features: Tensor | None,
    dropout_mask: Tensor | None,
    options: tuple[Any, ...],
    return_attention_weights: bool,
    high: dict[str, bool],
) -> Output:
    where = d.name.removesuffix("_n2n")
    if not isinstance(graph, CscGraph):
        raise wrong_type(where, "graph", f"type {type(graph).__name__}", "a CscGraph")
    pair = features if isinstance(features, tuple) else (features, None)
    if len(pair) != 2:
        raise wrong_type(where, "features", f"{len(pair)} tensors", "one, or sources, destinations")
    num_heads, activation, alpha, concat_heads = options
    given = {
        "src_embedding": pair[0],
        "dst_embedding": pair[1],
        "attn_weights": attn_weights,
        "edge_embedding": edge_features,
        "dropout_mask": dropout_mask,
    }
    inputs = [given.get(a.name) for a in d.op.inputs]
    asked = tuple(
        "float32" if x is not None and high.get(a.name) and x.dtype in _HALVES else ""
        for a, x in zip(d.op.inputs, inputs, strict=True)
    )
    chosen = {
        "num_heads": num_heads,
        "activation": activation,
        "activation_alpha": alpha,
        "concat_heads": concat_heads,
    }
    chosen = {**d.defaults, **d.normalised(chosen)}
    both = flag(where, "return_attention_weights", return_attention_weights)
    values = tuple(chosen[k] for k in d.options)
    wanted = ("attention",) if both else ()
    made = call(d, graph, inputs, values, wanted=wanted, grad_dtypes=asked)
    return (made[0], made[1]) if both else made[0]
