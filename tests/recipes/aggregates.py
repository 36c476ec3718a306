"""Calls of agg_simple, agg_weighted and spmm into poisoned arrays, for the recipes."""

from __future__ import annotations

from typing import Any

import numpy as np

from edgegrad import AggOp
from edgegrad.operators import (
    agg_simple_n2n_bwd,
    agg_simple_n2n_fwd,
    agg_weighted_n2n_bwd,
    agg_weighted_n2n_fwd,
    spmm_bwd,
    spmm_fwd,
)

WINNERS = (AggOp.Min, AggOp.Max)


def simple(device: Any, struct: Any, x: Any, op: Any) -> tuple[np.ndarray, Any]:
    """The aggregate, and the winners' places on the device."""
    shape = (*x.shape[:-2], struct.n_dst_nodes, x.shape[-1])
    output = device.poisoned(shape, x.dtype)
    extrema = device.poisoned(shape, np.dtype(struct.index_dtype)) if op in WINNERS else None
    agg_simple_n2n_fwd(output, x, struct, op, extrema)
    return device.numpy(output), extrema


def simple_back(device: Any, struct: Any, g: Any, op: Any, extrema: Any = None) -> np.ndarray:
    """The gradient of the sources."""
    grad = device.poisoned((*g.shape[:-2], struct.n_src_nodes, g.shape[-1]), g.dtype)
    agg_simple_n2n_bwd(grad, g, struct, op, extrema)
    return device.numpy(grad)


def weighted(
    device: Any, struct: Any, x: Any, w: Any, op: Any, g: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The weighted aggregate and both gradients, the weights' in CSC order."""
    output = device.poisoned((struct.n_dst_nodes, x.shape[1]), x.dtype)
    extrema = device.poisoned(output.shape, np.int32) if op in WINNERS else None
    agg_weighted_n2n_fwd(output, x, w, struct, op, extrema)
    dx, dw = device.poisoned(x.shape, x.dtype), device.poisoned(w.shape, w.dtype)
    agg_weighted_n2n_bwd(dx, dw, g, w, x, struct, op, output, extrema)
    return device.numpy(output), device.numpy(dx), device.numpy(dw)


def product(
    device: Any, struct: Any, w: Any, x: Any, g: Any, **options: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """spmm and both its gradients, the values' in CSC order."""
    output = device.poisoned((struct.n_dst_nodes, x.shape[1]), x.dtype)
    spmm_fwd(output, w, x, struct, **options)
    dw, dx = device.poisoned(w.shape, w.dtype), device.poisoned(x.shape, x.dtype)
    spmm_bwd(dw, dx, g, w, x, struct, **options)
    return device.numpy(output), device.numpy(dx), device.numpy(dw)


def by_edge_id(graph: Any, by_position: np.ndarray) -> np.ndarray:
    """An array of edges in the caller's order."""
    found = np.empty_like(by_position)
    found[graph.edge_ids] = by_position
    return found
