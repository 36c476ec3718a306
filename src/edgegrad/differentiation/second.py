"""Second derivatives, written as calls of operators, so that higher ones follow.

A backward call has the gradients of the outputs and the kept arrays for inputs and the gradients of
the inputs for outputs. With a cotangent c_k of each gradient asked for, its own gradients are those
of the scalar S = sum_k <c_k, gradient_k>, which is the derivative of <g, F(x)> in the direction c.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from edgegrad.differentiation.compositions import COMPOSITIONS, Composition
from edgegrad.differentiation.front import Front
from edgegrad.differentiation.registry import Derivatives, Options, Term, derivatives
from edgegrad.differentiation.shapes import Shape
from edgegrad.errors import DerivativeError

Arrays = Mapping[str, Any]


@dataclass(frozen=True)
class Gradients:
    """A backward call to differentiate.

    `outputs` are the gradients of forward's outputs by the output's name, `inputs` and `results`
    the kept inputs and outputs, all by their names, None where they are not given. `shapes` has
    the shape of every input of forward. `cotangents` has those of the gradients by the input's
    name, for every input that has one, None where it is not known or was not written. Gradients
    of inputs that are not `needed` may be left out.
    """

    graph: Any
    options: Options
    outputs: Arrays
    inputs: Arrays
    results: Arrays
    shapes: Mapping[str, Shape | None]
    cotangents: Arrays
    needed: Collection[str]


def second_derivatives(front: Front, d: Derivatives, b: Gradients) -> dict[str, dict[str, Any]]:
    """Return the gradients of a backward call.

    Parameters
    ----------
    front
        The front end's operators and functions of arrays.
    d
        The registration of the operator.
    b
        The backward call, with cotangents of what it wrote.

    Returns
    -------
    dict
        ``"outputs"``, ``"inputs"`` and ``"results"``: the gradients of the arrays of that group, by
        name; those that are zero everywhere are left out.

    Raises
    ------
    DerivativeError
        If the operator has no second derivative with these options.
    """
    if terms := d.terms(b.options):
        return _multilinear(front, d, b, terms)
    rule = d.rule(b.options)
    if rule == "softmax":
        return _softmax(front, b)
    if rule:
        return _composed(front, COMPOSITIONS[d.name], b)
    raise missing(d, b.options)


def missing(d: Derivatives, options: Options) -> DerivativeError:
    """Build the error for a second derivative that does not exist."""
    chosen = [f"{k}={v!r}" for k, v in options.items() if v != d.defaults.get(k)]
    having = f" with {', '.join(chosen)}" if chosen else ""
    return DerivativeError(f"{d.name}: there is no second derivative{having}")


def _multilinear(
    front: Front, d: Derivatives, b: Gradients, terms: tuple[Term, ...]
) -> dict[str, dict[str, Any]]:
    """Differentiate an operator that is a sum of terms, each linear in every one of its inputs."""
    (output,) = (a.name for a in d.op.outputs)
    cotangents = {k: c for k, c in b.cotangents.items() if c is not None}
    if all(len(term) == 1 for term in terms):
        inputs = {
            name: cotangents[name] if name in cotangents else front.zeros(shape, b.outputs[output])
            for name, shape in b.shapes.items()
            if shape is not None and any(name in term for term in terms)
        }
        inputs |= {k: a for k, a in b.inputs.items() if k not in inputs}
        return {"outputs": {output: front.forward(d, b.graph, b.options, inputs)}}
    (product,) = terms
    direction, gradients = None, {}
    for k, c in cotangents.items():
        inputs = {**b.inputs, k: c}
        part = front.forward(d, b.graph, b.options, inputs)
        gradient = b.outputs[output]
        # Own rows are appended as they are: they change with themselves alone.
        if _appends(d, b.options) and k != d.own:
            width = b.shapes[d.own][-1]  # type: ignore[index]
            part, gradient = (_without_own(front, a, width) for a in (part, gradient))
        direction = part if direction is None else direction + part
        others = [m for m in product if m != k and m in b.needed]
        if others:
            for m, a in front.backward(d, b.graph, b.options, inputs, gradient, others).items():
                gradients[m] = a if m not in gradients else gradients[m] + a
    return {"outputs": {output: direction}, "inputs": gradients}


def _appends(d: Derivatives, options: Options) -> bool:
    return bool(d.own) and options.get("concat_own", True)


def _without_own(front: Front, a: Any, width: int) -> Any:
    """Return an output whose last columns, the own rows, are 0."""
    kept = a[..., : a.shape[-1] - width]
    own = front.zeros((*a.shape[:-1], width), a)
    return front.concatenate((kept, own), axis=-1)


def _softmax(front: Front, b: Gradients) -> dict[str, dict[str, Any]]:
    """Differentiate ``y (g - sum(y g))``, the sum over the edges that are normalised together."""
    y, g, c = b.results["output"], b.outputs["output"], b.cotangents["logits"]
    sums = by_type_sums if b.options["scope"] == "dst_and_type" else by_destination_sums
    of_g, of_c = sums(front, b.graph, y * g), sums(front, b.graph, y * c)
    return {
        "outputs": {"output": y * (c - of_c)},
        "results": {"output": c * g - c * of_g - g * of_c},
    }


def by_destination_sums(front: Front, graph: Any, values: Any) -> Any:
    """Return for every edge the sum of the values of all edges of its destination; CSC order."""
    spmm = derivatives("spmm")
    heads = values.shape[1] if len(values.shape) == 2 else 1
    ones = front.ones((front.counts(graph)["n_src_nodes"], heads), values)
    inputs = {"values": values, "dense": ones}
    sums = front.forward(spmm, graph, spmm.defaults, inputs)
    return front.backward(spmm, graph, spmm.defaults, inputs, sums, ("values",))["values"]


def by_type_sums(front: Front, graph: Any, values: Any) -> Any:
    """Return for every edge the sum over the edges of its destination and type; CSC order."""
    if len(values.shape) == 2:
        heads = [by_type_sums(front, graph, values[:, h])[:, None] for h in range(values.shape[1])]
        return front.concatenate(heads, axis=1)
    basis = derivatives("agg_hg_basis_n2n_post")
    ones = front.ones((front.counts(graph)["n_src_nodes"], 1), values)
    inputs = {"input_embedding": ones, "weights_combination": None, "edge_weight": values}
    sums = front.forward(basis, graph, basis.defaults, inputs)
    wanted = ("edge_weight",)
    return front.backward(basis, graph, basis.defaults, inputs, sums, wanted)["edge_weight"]


def _composed(front: Front, compose: Composition, b: Gradients) -> dict[str, dict[str, Any]]:
    """Differentiate the gradients of an equal composition of operators that have derivatives."""
    outputs = {k: a for k, a in b.outputs.items() if a is not None}
    wanted = {k: c for k, c in b.cotangents.items() if c is not None}
    fixed = {k: a for k, a in b.inputs.items() if k not in b.cotangents}
    variables = {k: a for k, a in b.inputs.items() if a is not None and k not in fixed}
    names, n = list(variables), len(outputs)

    def value(*xs: Any) -> Any:
        made = compose(front, b.graph, b.options, {**b.inputs, **dict(zip(names, xs, strict=True))})
        return tuple(made[name] for name in outputs)

    def gradient(*arrays: Any) -> Any:
        _, pullback = front.vjp(value, *arrays[n:])
        found = dict(zip(names, pullback(arrays[:n]), strict=True))
        return tuple(found[k] for k in wanted)

    given = (*outputs.values(), *variables.values())
    _, pullback = front.vjp(gradient, *(front.accurate(a) for a in given))
    found = pullback(tuple(front.accurate(c) for c in wanted.values()))
    cast = [front.cast(a, like) for a, like in zip(found, given, strict=True)]
    return {
        "outputs": dict(zip(outputs, cast[:n], strict=True)),
        "inputs": dict(zip(names, cast[n:], strict=True)),
    }
