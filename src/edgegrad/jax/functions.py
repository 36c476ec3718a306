"""A function for every operator that has a gradient, made from its registration."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from edgegrad.differentiation import DIFFERENTIABLE, Derivatives
from edgegrad.differentiation.calls import Call
from edgegrad.differentiation.functions import function_of
from edgegrad.errors import wrong_type
from edgegrad.jax.derivatives import forward, permuted
from edgegrad.jax.graphs import NO_GRAPH, Reference, reference


def _call(
    d: Derivatives,
    graph: Any,
    inputs: Sequence[Any],
    options: tuple[Any, ...] | None,
    *,
    wanted: tuple[str, ...],
) -> tuple[Any, ...]:
    """Call an operator under JAX; edge arrays are all by edge id."""
    ref = reference(d, graph) if d.op.graphs else NO_GRAPH
    given = {
        a.name: _array(d, a.name, x)
        for a, x in zip(d.op.inputs, inputs, strict=True)
        if x is not None
    }
    return _by_id(Call.forward(d, options or d.usual, given, wanted), ref, given)


# Compiled, since a call outside of jit would be traced again each time, which takes milliseconds.
@functools.partial(jax.jit, static_argnums=0, inline=True)
def _by_id(call: Call, ref: Reference, inputs: dict[str, Any]) -> tuple[Any, ...]:
    ordered = call.d.by_position
    inputs = {k: permuted(ref, a, to_id=False) if k in ordered else a for k, a in inputs.items()}
    made = zip(call.outputs, forward(call, ref, inputs), strict=False)
    return tuple(permuted(ref, a, to_id=True) if k in ordered else a for k, a in made)


def _array(d: Derivatives, name: str, array: Any) -> Any:
    if isinstance(array, jax.Array):
        return array
    if not isinstance(array, np.ndarray):
        raise wrong_type(d.name, name, f"type {type(array).__name__}", "a JAX array")
    if jax.dtypes.canonicalize_dtype(array.dtype) != array.dtype:
        expected = "32 bits, or jax_enable_x64 set"
        raise wrong_type(d.name, name, f"dtype {array.dtype}", expected)
    return jnp.asarray(array)


FUNCTIONS = {d.name: function_of(d, _call, "edgegrad.jax", "Array") for d in DIFFERENTIABLE}
