"""Operators under JAX: forward and backward are each a function with a derivative."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero

from edgegrad.differentiation import Derivatives, second_derivatives
from edgegrad.differentiation.calls import Call, CallFront, backward_call
from edgegrad.differentiation.front import Arrays
from edgegrad.differentiation.registry import Options, Sizes
from edgegrad.errors import DerivativeError
from edgegrad.jax.graphs import Reference
from edgegrad.jax.launch import launch


@jax.tree_util.register_pytree_node_class
class _Names(tuple[str, ...]):
    """Names that go with arrays from a forward to its backward, where only arrays can go."""

    def tree_flatten(self) -> Any:
        return (), tuple(self)

    @classmethod
    def tree_unflatten(cls, names: Any, arrays: Any) -> _Names:
        return cls(names)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def forward(call: Call, ref: Reference, inputs: Arrays) -> tuple[Any, ...]:
    """Return what a forward call writes."""
    return launch(call, ref, inputs)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def backward(call: Call, ref: Reference, reads: Arrays) -> tuple[Any, ...]:
    """Return the gradients that a backward call writes."""
    return launch(call, ref, reads)


def _values(arrays: Any) -> Any:
    return jax.tree.map(lambda a: a.value, arrays)


def _asked(arrays: Mapping[str, Any]) -> _Names:
    """Names of the arrays that depend on what is differentiated with respect to."""
    return _Names(k for k, a in arrays.items() if a.perturbed)


def _known(cotangents: Sequence[Any]) -> list[Any]:
    """Return cotangents, None for those that are zero everywhere."""
    return [None if isinstance(c, SymbolicZero) else c for c in cotangents]


def _keep_for_backward(call: Call, ref: Any, inputs: Any) -> Any:
    ref, asked, inputs = _values(ref), _asked(inputs), _values(inputs)
    made: Any = forward(call, ref, inputs)
    known = {**inputs, **dict(zip(call.written, made, strict=True))}
    return made, (ref, {k: known[k] for k in call.kept if k in known}, asked)


def _gradients(call: Call, kept: Any, cotangents: Any) -> Any:
    ref, reads, asked = kept
    given = dict(zip(call.written, _known(cotangents), strict=True))
    reads = {**call.gradients_of_outputs(given), **reads}
    variables = [a.name for a in call.d.variables]
    if fixed := [k for k in asked if k not in variables]:
        raise DerivativeError(f"{call.name}: `{fixed[0]}` has no gradient")
    outputs = [k for k in call.outputs if given[k] is not None]
    by_name = dict.fromkeys(k for k, shape in call.shape_of.items() if shape is not None)
    if outputs:
        first = call.d.op.outputs[0]
        if given[first.name] is None:
            result = call.results(ref.sizes, ref.index_dtype)[0]
            reads[first.grad] = jnp.zeros(result.shape, result.dtype)
        back = call.backward([k for k in variables if k in asked])
        by_name.update(zip(back.asked, backward(back, ref, reads), strict=True))
    return None, by_name


def _keep_for_second(call: Call, ref: Any, reads: Any) -> Any:
    ref, asked, reads = _values(ref), _asked(reads), _values(reads)
    return backward(call, ref, reads), (ref, reads, asked)


def _second_gradients(call: Call, kept: Any, cotangents: Any) -> Any:
    ref, reads, asked = kept
    known = dict(zip(call.asked, _known(cotangents), strict=True))
    found: Mapping[str, Any] = {}
    if any(c is not None for c in known.values()):
        described = call.to_differentiate(ref, reads, known, asked)
        found = call.gradients_of_reads(second_derivatives(FRONT, call.d, described))
    return None, {k: found.get(k) for k in reads}


forward.defvjp(_keep_for_backward, _gradients, symbolic_zeros=True)
backward.defvjp(_keep_for_second, _second_gradients, symbolic_zeros=True)


def permuted(ref: Reference, a: Any, *, to_id: bool) -> Any:
    """Return an edge array by edge id of one in CSC order, or the other way round."""
    order = ref.positions if to_id else ref.ids
    if order is None:
        return a
    return a.at[order].get(unique_indices=True, mode="promise_in_bounds")


class _JaxFront(CallFront):
    """What the rules of second derivatives are written in, for JAX."""

    xp = jnp

    def counts(self, graph: Reference) -> Sizes:
        return graph.sizes

    def forward(self, d: Derivatives, graph: Any, options: Options, inputs: Arrays) -> Any:
        given = {k: a for k, a in inputs.items() if a is not None}
        made: Any = forward(Call.forward(d, d.values(options), given), graph, given)
        return made[0]

    def backward(
        self,
        d: Derivatives,
        graph: Any,
        options: Options,
        inputs: Arrays,
        gradient: Any,
        wanted: Sequence[str],
    ) -> dict[str, Any]:
        call, reads = backward_call(d, options, inputs, gradient, wanted)
        return dict(zip(call.asked, backward(call, graph, reads), strict=True))

    def vjp(self, function: Callable[..., Any], *arrays: Any) -> Any:
        return jax.vjp(function, *arrays)

    def by_position(self, graph: Reference, array: Any) -> Any:
        return permuted(graph, array, to_id=False)

    def by_id(self, graph: Reference, array: Any) -> Any:
        return permuted(graph, array, to_id=True)


FRONT = _JaxFront()
