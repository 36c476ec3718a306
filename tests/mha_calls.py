"""Forward and backward of an attention operator in one go, on any device."""

from __future__ import annotations

from typing import Any

import numpy as np

import edgegrad.operators as ops
from graphs import GraphData
from tolerances import bfloat16

KINDS = ("mha_gat", "mha_gat_v2", "mha_simple")


def operator(kind: str) -> Any:
    return next(o for o in ops.OPERATORS if o.name == f"{kind}_n2n")


def accumulator(dtype: Any) -> Any:
    return np.float64 if np.dtype(dtype) == np.float64 else np.float32


def inputs(
    kind: str,
    graph: GraphData,
    heads: int,
    width: int,
    rng: np.random.Generator,
    *,
    edges: bool = False,
    bipartite: bool = True,
    mean: float = 0.0,
) -> dict[str, np.ndarray]:
    """Random float64 arrays that the operator reads; nodes' features have this mean."""
    dim = heads * width
    shapes = {"src_embedding": (graph.n_src, dim)}
    if bipartite:
        shapes["dst_embedding"] = (graph.n_dst, dim)
    weights = dim if kind == "mha_gat_v2" else (2 + edges) * dim
    shapes["attn_weights"] = (weights,)
    if kind == "mha_simple":
        n = graph.n_src
        shapes = {"query": (graph.n_dst, dim), "key": (n, dim), "value": (n, dim)}
    if edges:
        shapes["edge_embedding"] = (graph.n_edges, dim)
    nodes = ("src_embedding", "dst_embedding", "value")
    return {k: rng.standard_normal(s) + mean * (k in nodes) for k, s in shapes.items()}


def forward(
    device: Any, kind: str, struct: Any, arrays: dict[str, Any], dtype: Any, **options: Any
) -> dict[str, np.ndarray]:
    """Output, statistics and coefficients; arrays are NumPy's, those of the mask as they are."""
    heads = options["num_heads"]
    given = _on(device, kind, arrays, dtype)
    values = given.get("value", given.get("src_embedding"))
    width = values.shape[1] // (1 if options.get("concat_heads", True) else heads)
    a = accumulator(dtype)
    written = {
        "output_embedding": device.poisoned((struct.n_dst_nodes, width), dtype),
        "softmax_stats": device.poisoned((2, struct.n_dst_nodes, heads), a),
        "attention": device.poisoned((heads, struct.n_indices), a),
    }
    getattr(ops, f"{kind}_n2n_fwd")(**written, **given, graph=struct, **options)
    return {k: device.numpy(v) for k, v in written.items()}


def backward(
    device: Any,
    kind: str,
    struct: Any,
    arrays: dict[str, Any],
    saved: dict[str, np.ndarray],
    g: np.ndarray,
    dtype: Any,
    *,
    keep_output: bool = True,
    grad_dtypes: dict[str, Any] | None = None,
    **options: Any,
) -> dict[str, np.ndarray]:
    """All gradients of what is given."""
    given = _on(device, kind, arrays, dtype)
    op = operator(kind)
    wanted: dict[str, Any] = {}
    for a in op.inputs:
        if not a.grad:
            continue
        present = given.get(a.name) is not None
        shape = tuple(given[a.name].shape) if present else (struct.n_indices, options["num_heads"])
        as_dtype = (grad_dtypes or {}).get(a.grad, dtype)
        here = present or a.grad == "grad_edge_bias"
        wanted[a.grad] = device.poisoned(shape, as_dtype) if here else None
    getattr(ops, f"{kind}_n2n_bwd")(
        **wanted,
        **given,
        grad_output=device.array(g.astype(dtype)),
        output_embedding=device.array(saved["output_embedding"]) if keep_output else None,
        softmax_stats=device.array(saved["softmax_stats"]),
        graph=struct,
        **options,
    )
    return {k: device.numpy(v) for k, v in wanted.items() if v is not None}


def _on(device: Any, kind: str, arrays: dict[str, Any], dtype: Any) -> dict[str, Any]:
    required = {a.name: None for a in operator(kind).inputs if not a.optional or not a.keyword}
    kept = ("dropout_mask",)
    return required | {
        k: device.array(v if k in kept else v.astype(dtype)) for k, v in arrays.items()
    }


DTYPES = (np.dtype(np.float16), bfloat16, np.dtype(np.float32), np.dtype(np.float64))
