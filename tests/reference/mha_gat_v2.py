"""GATv2 by edges, in float64."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from edgegrad.operators.mha_gat_v2 import MHA_GAT_V2
from graphs import GraphData
from reference import Arrays, Case, attention
from reference.attention import (
    Attention,
    Sized,
    by_edge_id,
    by_position,
    exact,
    flat,
    grid,
    heads_of,
)

WIDTH = 3


def inputs(graph: GraphData, rng: np.random.Generator, chosen: Mapping[str, Any]) -> Arrays:
    dim = chosen["num_heads"] * WIDTH
    return {
        "src_embedding": grid(rng, graph.n_src, dim),
        "dst_embedding": grid(rng, graph.n_dst, dim) if "dst" in chosen else None,
        "attn_weights": grid(rng, dim),
        **attention.optional_arrays(graph, rng, chosen, dim),
    }


def _activated(graph: GraphData, a: Arrays, options: Any) -> tuple[Sized, Sized, Sized]:
    """Weights; value and derivative of the activation: (edges, heads, columns)."""
    heads = options["num_heads"]
    name, alpha = options.get("activation", "leaky_relu"), options.get("activation_alpha", 0.2)
    x, y = a["src_embedding"], a["dst_embedding"]
    y = x[: graph.n_dst] if y is None else y
    z = exact(x[graph.indices]) + exact(y[graph.destinations])
    if a["edge_embedding"] is not None:
        z = z + exact(by_position(graph, a["edge_embedding"]))
    z = z.map(lambda v: heads_of(v, heads))
    return exact(a["attn_weights"].reshape(1, heads, -1)), *attention.activated(name, z, alpha)


def attend(graph: GraphData, a: Arrays, options: Any) -> Attention:
    heads = options["num_heads"]
    w, value, _ = _activated(graph, a, options)
    values = exact(heads_of(a["src_embedding"][graph.indices], heads))
    mask = attention.factors(graph, heads, a["dropout_mask"], options.get("dropout_p", 0.0))
    bias = None if a["edge_bias"] is None else by_position(graph, a["edge_bias"])
    logits = attention.sum_columns(w * value)
    return Attention(graph, heads, options.get("concat_heads", True), logits, values, mask, bias)


def gradients(at: Attention, a: Arrays, options: Any) -> dict[str, Sized]:
    graph = at.graph
    w, value, slope = _activated(graph, a, options)
    delta = at.deltas(a["grad_output"], a["grad_attention"]).map(lambda v: v[..., None])
    sent = delta * w * slope
    src = flat(at.by_src(at.value_gradients(a["grad_output"]) + sent))
    dst = flat(at.by_dst(sent))
    found = {"grad_attn_weights": (delta * value).map(lambda v: v.sum(0).ravel())}
    if a["dst_embedding"] is None:
        src = attention.add_own(src, dst)
    else:
        found["grad_dst"] = dst
    if a["edge_embedding"] is not None:
        found["grad_edge"] = flat(sent).map(lambda v: by_edge_id(graph, v))
    return {"grad_src": src, **found}


ORACLE = attention.Oracle(MHA_GAT_V2, inputs, attend, gradients)


def cases(graph: GraphData, rng: np.random.Generator) -> Iterator[Case]:
    """Both halves under many combinations of options."""
    return attention.cases(ORACLE, graph, rng, activations=True)
