"""GAT by edges, in float64."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from edgegrad.operators.mha_gat import MHA_GAT
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

WIDTH, EDGE_WIDTH = 3, 2


def inputs(graph: GraphData, rng: np.random.Generator, chosen: Mapping[str, Any]) -> Arrays:
    heads = chosen["num_heads"]
    dim, edge_dim = heads * WIDTH, heads * EDGE_WIDTH
    optional = attention.optional_arrays(graph, rng, chosen, edge_dim)
    size = 2 * dim + (edge_dim if "edges" in chosen else 0)
    return {
        "src_embedding": grid(rng, graph.n_src, dim),
        "dst_embedding": grid(rng, graph.n_dst, dim) if "dst" in chosen else None,
        "attn_weights": grid(rng, size),
        **optional,
    }


def _parts(graph: GraphData, a: Arrays, heads: int) -> list[tuple[Sized, Sized]]:
    """Weights and rows, per edge, of the source, the destination and the edge part."""
    x, y, f = a["src_embedding"], a["dst_embedding"], a["edge_embedding"]
    y = x[: graph.n_dst] if y is None else y
    rows = [x[graph.indices], y[graph.destinations]]
    rows += [] if f is None else [by_position(graph, f)]
    at, parts = 0, []
    for r in rows:
        w = a["attn_weights"][at : at + r.shape[1]].reshape(1, heads, r.shape[1] // heads)
        parts.append((exact(w), exact(heads_of(r, heads))))
        at += r.shape[1]
    return parts


def _score(graph: GraphData, a: Arrays, options: Any) -> tuple[Sized, Sized]:
    """Logits, and their derivative by what the activation is given."""
    heads = options["num_heads"]
    name, alpha = options.get("activation", "leaky_relu"), options.get("activation_alpha", 0.2)
    z = Sized(np.zeros((graph.n_edges, heads)), np.zeros((graph.n_edges, heads)))
    for w, rows in _parts(graph, a, heads):
        z = z + attention.sum_columns(w * rows)
    return attention.activated(name, z, alpha)


def attend(graph: GraphData, a: Arrays, options: Any) -> Attention:
    heads = options["num_heads"]
    logits, _ = _score(graph, a, options)
    values = exact(heads_of(a["src_embedding"][graph.indices], heads))
    mask = attention.factors(graph, heads, a["dropout_mask"], options.get("dropout_p", 0.0))
    bias = None if a["edge_bias"] is None else by_position(graph, a["edge_bias"])
    return Attention(graph, heads, options.get("concat_heads", True), logits, values, mask, bias)


def gradients(at: Attention, a: Arrays, options: Any) -> dict[str, Sized]:
    graph = at.graph
    _, slope = _score(graph, a, options)
    dz = at.deltas(a["grad_output"], a["grad_attention"]) * slope
    wide = dz.map(lambda v: v[..., None])
    sent = [w * wide for w, _ in _parts(graph, a, at.heads)]
    weights = [
        (rows * wide).map(lambda v: v.sum(0).ravel()) for _, rows in _parts(graph, a, at.heads)
    ]
    src = flat(at.by_src(at.value_gradients(a["grad_output"]) + sent[0]))
    dst = flat(at.by_dst(sent[1]))
    found = {"grad_attn_weights": attention.concatenate(weights)}
    if a["dst_embedding"] is None:
        src = attention.add_own(src, dst)
    else:
        found["grad_dst"] = dst
    if a["edge_embedding"] is not None:
        found["grad_edge"] = flat(sent[2]).map(lambda v: by_edge_id(graph, v))
    return {"grad_src": src, **found}


ORACLE = attention.Oracle(MHA_GAT, inputs, attend, gradients)


def cases(graph: GraphData, rng: np.random.Generator) -> Iterator[Case]:
    """Both halves under many combinations of options."""
    return attention.cases(ORACLE, graph, rng, activations=True)
