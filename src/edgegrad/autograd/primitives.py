"""Forward and backward of the operators as primitives of HIPS autograd."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import autograd.numpy
import numpy as np
from autograd.builtins import tuple as autograd_tuple
from autograd.core import make_vjp
from autograd.extend import defvjp, defvjp_argnums, primitive

from edgegrad.differentiation import Derivatives, second_derivatives
from edgegrad.differentiation.calls import Call, CallFront, backward_call
from edgegrad.differentiation.front import Arrays
from edgegrad.differentiation.registry import Options, Sizes
from edgegrad.errors import DerivativeError
from edgegrad.graph import Graph

anp: Any = autograd.numpy
make_tuple: Any = autograd_tuple
untyped_vjp: Any = make_vjp
_HEAD = 3  # arguments of the primitives before the arrays
Names = tuple[str, ...]


def _rows(a: np.ndarray) -> np.ndarray:
    """Return an array in a layout that kernels read: rows may be apart, not what is in them."""
    whole = a.flags.c_contiguous or (a.ndim == 2 and a.strides[1] == a.itemsize)
    return a if whole else np.ascontiguousarray(a)


def _run(call: Call, graph: Graph | None, names: Names, arrays: tuple[Any, ...]) -> tuple[Any, ...]:
    counts, index_dtype = ({}, "") if graph is None else (graph.sizes, graph.index_dtype)
    results = call.results(counts, index_dtype)
    made = {r.name: np.empty(r.shape, np.dtype(r.dtype)) for r in results}
    read = {name: _rows(a) for name, a in zip(names, arrays, strict=True)}
    on = {} if graph is None else {"graph": graph}
    call.function(**{**call.arguments(counts), **read, **made, **on})
    return tuple(made.values())


@primitive
def forward(call: Call, graph: Graph | None, names: Names, *arrays: Any) -> tuple[Any, ...]:
    """Return what a forward call writes; `names` are those of the inputs given."""
    return _run(call, graph, names, arrays)


@primitive
def backward(call: Call, graph: Graph | None, names: Names, *arrays: Any) -> tuple[Any, ...]:
    """Return the gradients that a backward call writes; `names` are those of what it reads."""
    return _run(call, graph, names, arrays)


def _gradients(argnums: Sequence[int], ans: Any, args: Any, kwargs: Any) -> Callable[[Any], Any]:
    call, graph, names, *arrays = args
    known = dict(zip(names, arrays, strict=True))
    known.update((name, ans[i]) for i, name in enumerate(call.written))
    variables = [a.name for a in call.d.variables]
    asked = [names[i - _HEAD] for i in argnums]
    if fixed := [k for k in asked if k not in variables]:
        raise DerivativeError(f"{call.name}: `{fixed[0]}` has no gradient")

    def vjp(g: Any) -> Any:
        cotangents = {name: g[i] for i, name in enumerate(call.outputs)}
        reads = call.gradients_of_outputs(cotangents)
        reads.update((k, known[k]) for k in call.kept if k in known)
        back = call.backward([k for k in variables if k in asked])
        found = backward(back, graph, tuple(reads), *reads.values())
        return [found[back.asked.index(k)] for k in asked]

    return vjp


def _second_gradients(argnums: Sequence[int], ans: Any, args: Any, kwargs: Any) -> Any:
    call, graph, names, *arrays = args
    reads = dict(zip(names, arrays, strict=True))
    asked = [names[i - _HEAD] for i in argnums]

    def vjp(g: Any) -> Any:
        cotangents = {name: g[i] for i, name in enumerate(call.asked)}
        described = call.to_differentiate(graph, reads, cotangents, asked)
        found = call.gradients_of_reads(second_derivatives(FRONT, call.d, described))
        return [found[k] if k in found else FRONT.zeros(reads[k].shape, reads[k]) for k in asked]

    return vjp


defvjp_argnums(forward, _gradients)
defvjp_argnums(backward, _second_gradients)


@primitive
def _permute(a: np.ndarray, order: np.ndarray, inverse: np.ndarray) -> np.ndarray:
    return a[order]


defvjp(_permute, lambda ans, a, order, inverse: lambda g: _permute(g, inverse, order), argnums=(0,))


def permuted(graph: Graph, a: Any, *, to_id: bool) -> Any:
    """Return an edge array by edge id of one in CSC order, or the other way round."""
    if graph.map_csc_to_coo is None:
        return a
    ids, positions = graph.cached("numpy_maps", lambda: _maps(graph))
    return _permute(a, *((positions, ids) if to_id else (ids, positions)))


def _maps(graph: Graph) -> tuple[np.ndarray, np.ndarray]:
    """Return the edge id of every position, and the position of every edge id."""
    ids = np.asarray(graph.map_csc_to_coo)
    positions = np.empty_like(ids)
    positions[ids] = np.arange(len(ids), dtype=ids.dtype)
    return ids, positions


class _AutogradFront(CallFront):
    """What the rules of second derivatives are written in, for autograd."""

    xp = anp

    def counts(self, graph: Graph) -> Sizes:
        return graph.sizes

    def forward(self, d: Derivatives, graph: Any, options: Options, inputs: Arrays) -> Any:
        given = {k: a for k, a in inputs.items() if a is not None}
        return forward(
            Call.forward(d, d.values(options), given), graph, tuple(given), *given.values()
        )[0]

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
        made = backward(call, graph, tuple(reads), *reads.values())
        return {name: made[i] for i, name in enumerate(call.asked)}

    def vjp(self, function: Callable[..., Any], *arrays: Any) -> Any:
        pullback, value = untyped_vjp(lambda xs: make_tuple(function(*xs)), make_tuple(arrays))
        return value, lambda gradients: pullback(make_tuple(gradients))

    def by_position(self, graph: Graph, array: Any) -> Any:
        return permuted(graph, array, to_id=False)

    def by_id(self, graph: Graph, array: Any) -> Any:
        return permuted(graph, array, to_id=True)


FRONT = _AutogradFront()
