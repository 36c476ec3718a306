"""Dot-product attention by edges, in float64."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from edgegrad.operators.mha_simple import MHA_SIMPLE
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
    """Values are as wide as keys where edges are added to both, else narrower."""
    dim = chosen["num_heads"] * WIDTH
    value_dim = dim if "edges" in chosen else chosen["num_heads"] * (WIDTH - 1)
    return {
        "query": grid(rng, graph.n_dst, dim),
        "key": grid(rng, graph.n_src, dim),
        "value": grid(rng, graph.n_src, value_dim),
        **attention.optional_arrays(graph, rng, chosen, dim),
    }


def _rows(graph: GraphData, a: Arrays, options: Any) -> tuple[Sized, Sized, Sized, Sized]:
    """Query, key and value of every edge, and what products are multiplied by."""
    heads = options["num_heads"]
    key, value = exact(a["key"][graph.indices]), exact(a["value"][graph.indices])
    if a["edge_embedding"] is not None:
        f = exact(by_position(graph, a["edge_embedding"]))
        key, value = key + f, value + f
    query = exact(a["query"][graph.destinations])
    rows = [s.map(lambda v: heads_of(v, heads)) for s in (query, key, value)]
    norm = options.get("norm_by_dim", True)
    scale = 1 / np.sqrt(a["key"].shape[1] / heads) if norm else 1.0
    return *rows, exact(scale)


def attend(graph: GraphData, a: Arrays, options: Any) -> Attention:
    heads = options["num_heads"]
    query, key, value, scale = _rows(graph, a, options)
    mask = attention.factors(graph, heads, a["dropout_mask"], options.get("dropout_p", 0.0))
    bias = None if a["edge_bias"] is None else by_position(graph, a["edge_bias"])
    logits = attention.sum_columns(query * key) * scale
    return Attention(graph, heads, options.get("concat_heads", True), logits, value, mask, bias)


def gradients(at: Attention, a: Arrays, options: Any) -> dict[str, Sized]:
    graph = at.graph
    query, key, _, scale = _rows(graph, a, options)
    delta = at.deltas(a["grad_output"], a["grad_attention"]).map(lambda v: v[..., None]) * scale
    to_value = at.value_gradients(a["grad_output"])
    to_key = delta * query
    found = {
        "grad_query": flat(at.by_dst(delta * key)),
        "grad_key": flat(at.by_src(to_key)),
        "grad_value": flat(at.by_src(to_value)),
    }
    if a["edge_embedding"] is not None:
        found["grad_edge"] = flat(to_key + to_value).map(lambda v: by_edge_id(graph, v))
    return found


ORACLE = attention.Oracle(MHA_SIMPLE, inputs, attend, gradients)


def cases(graph: GraphData, rng: np.random.Generator) -> Iterator[Case]:
    """Both halves under many combinations of options."""
    yield from attention.cases(ORACLE, graph, rng, activations=False)
