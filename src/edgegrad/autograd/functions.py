"""A function for every operator that has a gradient, made from its registration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from autograd.extend import Box

from edgegrad.autograd.primitives import forward, permuted
from edgegrad.differentiation import DIFFERENTIABLE, Derivatives
from edgegrad.differentiation.calls import Call
from edgegrad.differentiation.functions import function_of
from edgegrad.errors import wrong_type, wrong_value
from edgegrad.graph import Graph


def _call(
    d: Derivatives,
    graph: Any,
    inputs: Sequence[Any],
    options: tuple[Any, ...] | None,
    *,
    wanted: tuple[str, ...],
) -> tuple[Any, ...]:
    """Call an operator under autograd; edge arrays are all by edge id."""
    struct = _struct(d, graph) if d.op.graphs else None
    given = {
        a.name: _array(d, a.name, x)
        for a, x in zip(d.op.inputs, inputs, strict=True)
        if x is not None
    }
    call = Call.forward(d, options or d.usual, given, wanted)
    if struct is None or not d.by_position:
        made = forward(call, struct, tuple(given), *given.values())
        return tuple(made[i] for i in range(len(call.outputs)))
    call.results(struct.sizes, struct.index_dtype)  # shapes, before anything is put in order
    ordered = (
        permuted(struct, a, to_id=False) if k in d.by_position else a for k, a in given.items()
    )
    made = forward(call, struct, tuple(given), *ordered)
    return tuple(
        permuted(struct, made[i], to_id=True) if name in d.by_position else made[i]
        for i, name in enumerate(call.outputs)
    )


def _struct(d: Derivatives, graph: Any) -> Graph:
    struct = getattr(graph, "struct", graph)
    if not isinstance(struct, Graph):
        raise wrong_type(d.name, "graph", f"type {type(graph).__name__}", "a graph of edgegrad")
    if not struct.on_host:
        raise wrong_value(d.name, "graph", f"device {struct.device}", "cpu, where NumPy arrays are")
    return struct


def _array(d: Derivatives, name: str, array: Any) -> Any:
    value = array
    while isinstance(value, Box):
        value = value._value
    if not isinstance(value, np.ndarray):
        raise wrong_type(d.name, name, f"type {type(value).__name__}", "a NumPy array")
    return array


FUNCTIONS = {d.name: function_of(d, _call, "edgegrad.autograd", "array") for d in DIFFERENTIABLE}
