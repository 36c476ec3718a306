"""What the attention operators share: options, arrays, checks, host calls."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

from edgegrad.errors import wrong_option, wrong_type, wrong_value
from edgegrad.graph import Graph
from edgegrad.operator import Arg, Call, Operator, check
from edgegrad.operators import attention_plans, edges

# Numbered like Activation in kernels/common/activation.h.
ACTIVATIONS = ("linear", "relu", "sigmoid", "tanh", "elu", "scalar", "leaky_relu")
GRAPHS = ("csc", "bipartite_csc")

ATTENTION = Arg(
    "attention",
    ("num_heads", "n_indices"),
    dtype="float32|A",
    grad="grad_attention",
    optional=True,
    keyword=True,
)
STATS = Arg("softmax_stats", ("2", "n_dst_nodes", "num_heads"), dtype="A", optional=True)
MASK = Arg(
    "dropout_mask",
    ("num_heads", "n_indices"),
    dtype="float32|A|bool",
    optional=True,
    keyword=True,
)
BIAS = Arg(
    "edge_bias",
    ("n_indices", "num_heads"),
    dtype="B",
    grad="grad_edge_bias",
    grad_dtype="GB",
    optional=True,
    keyword=True,
)
SCRATCH = (
    "forward: the partial output of each piece of a long row (4,096 edges on the host, 128 on a "
    "GPU); backward: 6 numbers per destination and head, sums of weight gradients per 1/256 of the "
    "edges, partial gradients of pieces"
)


def edge_features(columns: str) -> Arg:
    """Return the declaration of edge features of this width."""
    return Arg(
        "edge_embedding",
        ("n_indices", columns),
        grad="grad_edge",
        grad_dtype="GE",
        optional=True,
        keyword=True,
    )


def node_width(columns: str) -> Callable[[Mapping[str, int]], int]:
    """Return how wide the output is for values of this width."""
    return lambda s: s[columns] if s["concat_heads"] else s[columns] // s["num_heads"]


@dataclass(frozen=True)
class Family:
    """An attention operator: which of its arrays plays which part, and its host functions."""

    op: Operator
    name: str  # of its files
    score: str  # of its kernels: what makes a logit
    src: str
    dst: str
    value: str
    gradients: tuple[str, ...]  # of src, dst, value, weights ("": none)
    forward: Callable[..., None]
    backward: Callable[..., None]
    per_head: bool = False  # a logit's derivative by an end is a number per head
    separate: bool = False  # values are apart from what is scored

    @cached_property
    def written(self) -> tuple[str, ...]:
        """The gradients of src, dst, value, weights, edge features and bias ("": none)."""
        return (*self.gradients, "grad_edge", "grad_edge_bias")

    @cached_property
    def in_heads(self) -> tuple[str, ...]:
        """Arrays whose columns are a multiple of the number of heads."""
        return tuple(dict.fromkeys((self.src, self.value, "edge_embedding")))

    def inputs(self, call: Call) -> tuple[Any, ...]:
        """Return the arrays of a call by their part: src, dst, value, edge, weights, bias."""
        a = call.arrays
        dst = a[self.src] if a[self.dst] is None else a[self.dst]
        weights = a.get("attn_weights")
        return a[self.src], dst, a[self.value], a["edge_embedding"], weights, a["edge_bias"]


@dataclass(frozen=True)
class Options:
    """Checked options in the form kernels take them."""

    heads: int
    concat: bool
    activation: int
    alpha: float  # of the activation; of dot products their scale
    norm_by_dim: bool
    dropout: tuple[float, int, int] = (1.0, 0, 0)  # scale of what is kept, seed, limit of 2**32

    @cached_property
    def for_host(self) -> tuple[Any, ...]:
        """Return what attention_bind.h calls options."""
        return self.heads, self.concat, self.activation, self.alpha


def check_options(
    where: str,
    num_heads: Any,
    concat_heads: Any,
    activation: Any,
    activation_alpha: Any,
    dropout: tuple[Any, Any, Any],
    norm_by_dim: Any = False,
) -> Options:
    """Check the options of a call; `dropout` is mask, p and seed."""
    given = (where, num_heads, concat_heads, activation, activation_alpha, norm_by_dim)
    try:
        options = _checked(*given)
    except TypeError:  # one of them has the wrong type, or cannot be looked up
        options = _checked.__wrapped__(*given)
    mask, p, seed = dropout
    if mask is None and seed is None and type(p) is float and p == 0:
        return options
    return replace(options, dropout=_dropout(where, mask, p, seed))


@lru_cache(typed=True)  # a model has few layers, and calls them often
def _checked(
    where: str,
    num_heads: Any,
    concat_heads: Any,
    activation: Any,
    activation_alpha: Any,
    norm_by_dim: Any,
) -> Options:
    heads = _integer(where, "num_heads", num_heads)
    if heads < 1:
        raise wrong_option(where, "num_heads", num_heads, "at least 1")
    if not isinstance(activation, str):
        raise wrong_type(where, "activation", f"type {type(activation).__name__}", "a str")
    if activation not in ACTIVATIONS:
        raise wrong_option(where, "activation", activation, " or ".join(map(repr, ACTIVATIONS)))
    alpha = _real(where, "activation_alpha", activation_alpha)
    return Options(
        heads,
        _flag(where, "concat_heads", concat_heads),
        ACTIVATIONS.index(activation),
        alpha,
        _flag(where, "norm_by_dim", norm_by_dim),
    )


def _dropout(where: str, mask: Any, p: Any, seed: Any) -> tuple[float, int, int]:
    p = _real(where, "dropout_p", p)
    if not 0 <= p <= 1:
        raise wrong_option(where, "dropout_p", p, "0 <= p <= 1")
    scale = 0.0 if p == 1 else 1 / (1 - p)
    if seed is not None:
        seed = _integer(where, "dropout_seed", seed)
        if not 0 <= seed < 2**64:
            raise wrong_option(where, "dropout_seed", seed, "0 <= seed < 2**64")
        if mask is not None:
            raise wrong_option(where, "dropout_seed", seed, "None, since `dropout_mask` is given")
    elif mask is None and p > 0:
        raise wrong_type(
            where, "dropout_seed", "type NoneType", "an int, since `dropout_p` is positive"
        )
    return scale, seed or 0, round(p * 2**32)


def _integer(where: str, name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise wrong_type(where, name, f"type {type(value).__name__}", "an int")
    return int(value)


def _real(where: str, name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise wrong_type(where, name, f"type {type(value).__name__}", "a float")
    return float(value)


def _flag(where: str, name: str, value: Any) -> bool:
    if type(value).__name__ not in ("bool", "bool_"):
        raise wrong_type(where, name, f"type {type(value).__name__}", "a bool")
    return bool(value)


def run_forward(
    family: Family, graph: Graph, given: Mapping[str, Any], options: Options, stream_id: int
) -> None:
    """Check a forward call and make it."""
    call, options = _check(family, "fwd", graph, given, options, stream_id)
    if call.on_host:
        a, incoming = call.arrays, edges.incoming(graph)
        family.forward(
            (a["output_embedding"], a["softmax_stats"], a["attention"]),
            family.inputs(call),
            options.for_host,
            (a["dropout_mask"], *options.dropout),
            incoming.native,
            incoming.wide,
        )
        return
    attention_plans.forward(family, call, graph, options, stream_id)


def run_backward(
    family: Family, graph: Graph, given: Mapping[str, Any], options: Options, stream_id: int
) -> None:
    """Check a backward call and write the gradients it asks for."""
    where = f"{family.op.name}_bwd"
    for gradient, array in (("grad_dst", "dst_embedding"), ("grad_edge", "edge_embedding")):
        if given.get(gradient) is not None and given[array] is None:
            raise wrong_value(where, gradient, "an array", f"None, since `{array}` is None")
    call, options = _check(family, "bwd", graph, given, options, stream_id)
    a = call.arrays
    arrays = tuple([a[name] if name else None for name in family.written])
    if arrays.count(None) == len(arrays):
        return
    if call.on_host:
        incoming = edges.incoming(graph)
        family.backward(
            arrays,
            (a["grad_output"], a["output_embedding"], a["softmax_stats"], a["grad_attention"]),
            a[family.dst] is None,
            family.inputs(call),
            options.for_host,
            (a["dropout_mask"], *options.dropout),
            incoming.native,
            edges.outgoing(graph).native,
            incoming.wide,
        )
        return
    attention_plans.backward(family, call, graph, options, stream_id)


def _check(
    family: Family,
    half: Any,
    graph: Graph,
    given: Mapping[str, Any],
    options: Options,
    stream_id: int,
) -> tuple[Call, Options]:
    sizes = {"2": 2, "num_heads": options.heads, "concat_heads": options.concat}
    call = check(family.op, half, graph, given, sizes, stream_id)
    a = call.arrays
    for name in family.in_heads:
        if a[name] is not None and a[name].shape[-1] % options.heads:
            raise wrong_value(
                call.where,
                name,
                f"shape {a[name].shape}",
                f"columns in a multiple of num_heads={options.heads}",
            )
    if a[family.dst] is None and "bipartite" in graph.kind:
        raise wrong_value(
            call.where, family.dst, "the value None", "an array, since the graph is bipartite"
        )
    width, edge = call.sizes["dim_node"], a["edge_embedding"]
    if edge is not None and family.value != family.src and call.sizes["dim_value"] != width:
        has = f"shape {a[family.value].shape}"
        expected = f"dim_node={width} columns, like `edge_embedding`"
        raise wrong_value(call.where, family.value, has, expected)
    if options.norm_by_dim and width:
        options = replace(options, alpha=1 / math.sqrt(width / options.heads))
    return call, options
