"""A function for every operator that has a gradient, made from its registration."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor

from edgegrad.differentiation import DIFFERENTIABLE, Derivatives
from edgegrad.errors import wrong_type, wrong_value
from edgegrad.torch.autocast import autocast
from edgegrad.torch.function import forward, permuted
from edgegrad.torch.graphs import SIZES, Reference, reference

_MAPPED, _EDGES = SIZES.index("mapped"), SIZES.index("n_indices")
_WITHOUT_GRAPH = Reference(None, ())  # type: ignore[arg-type]


def call(
    d: Derivatives,
    graph: Any,
    inputs: Sequence[Any],
    options: tuple[Any, ...] | None = None,
    *,
    wanted: tuple[str, ...] = (),
    grad_dtypes: tuple[str, ...] | None = None,
    by_id: bool = True,
) -> tuple[Tensor, ...]:
    """Call an operator under autograd.

    Parameters
    ----------
    d
        Its registration.
    graph
        A graph of edgegrad or a CscGraph; not looked at by operators that take none.
    inputs
        A tensor or None for every input, in the order of the declaration.
    options
        The value of every option, normalised, in order; None where all are at their defaults.
    wanted
        Names of the optional outputs to return too.
    grad_dtypes
        Name of the dtype of every input's gradient, "" where it is that of the input.
    by_id
        Edge arrays are all by edge id, the order of the caller's edges. Otherwise they are in the
        order that the explicit operator has them in.

    Returns
    -------
    tuple of Tensor
        The outputs, in the order of the declaration.
    """
    for i, x in enumerate(inputs):
        if x is not None and not isinstance(x, Tensor):
            has = f"type {type(x).__name__}"
            raise wrong_type(d.name, d.op.inputs[i].name, has, "a torch.Tensor")
    ref = reference(d.name, graph) if d.op.graphs else _WITHOUT_GRAPH
    arrays = autocast(d, inputs)
    ordered = by_id and d.by_position and ref.counts[_MAPPED]
    if ordered:
        arrays = [
            _by_position(d, ref, a.name, x) if x is not None and a.name in d.by_position else x
            for a, x in zip(d.op.inputs, arrays, strict=True)
        ]
    asked = grad_dtypes or ("",) * len(arrays)
    values = d.usual if options is None else options
    made = forward(d.name, ref.token, ref.counts, ",".join(wanted), values, asked, *arrays)
    if not ordered:
        return made[: 1 + len(wanted)]
    outputs = [a.name for a in d.op.outputs if not a.optional or a.name in wanted]
    return tuple(
        permuted(ref, y, to_id=True) if name in d.by_position else y
        for name, y in zip(outputs, made, strict=False)
    )


def _by_position(d: Derivatives, graph: Reference, name: str, x: Tensor) -> Tensor:
    n = graph.counts[_EDGES]
    if x.dim() == 0 or x.shape[0] != n:
        where, expected = d.op.functions["fwd"], f"(n_indices={n}, ...)"
        raise wrong_value(where, name, f"shape {tuple(x.shape)}", expected)
    return permuted(graph, x, to_id=False)


def _parameters(d: Derivatives) -> list[inspect.Parameter]:
    """Return the parameters of the function of an operator: those of forward that are read."""
    others = {a.name for a in (*d.op.outputs, *d.op.saved)} | {"stream_id"}
    others |= set(d.op.sizes.get("fwd", ()))
    kept = [p for n, p in inspect.signature(d.fwd).parameters.items() if n not in others]
    optional = [a.name for a in d.op.outputs if a.optional]
    flags = [
        inspect.Parameter(f"return_{name}", inspect.Parameter.KEYWORD_ONLY, default=False)
        for name in optional
    ]
    return [*kept, *flags]


_MISSING: Any = object()


def function_of(d: Derivatives, *, by_id: bool = True) -> Callable[..., Any]:
    """Make the function of an operator from its registration; `by_id` is that of `call`."""
    parameters = _parameters(d)
    place = {p.name: i for i, p in enumerate(parameters)}
    defaults = [_MISSING if p.default is p.empty else p.default for p in parameters]
    n_positional = sum(p.kind is p.POSITIONAL_OR_KEYWORD for p in parameters)
    n_required = sum(value is _MISSING for value in defaults)  # the first ones
    at_graph = place.get("graph", -1)
    at_inputs = [place[a.name] for a in d.op.inputs]
    at_options = [place[name] for name in d.options]
    usual = [defaults[i] for i in at_options] if len(d.usual) == len(at_options) else None
    flags = [(place[f"return_{a.name}"], a.name) for a in d.op.outputs if a.optional]

    def function(*args: Any, **keywords: Any) -> Any:
        given = [*args, *defaults[len(args) :]]
        for name, value in keywords.items():
            if place.get(name, -1) < len(args):
                raise TypeError(f"{d.name}: unexpected or repeated argument `{name}`")
            given[place[name]] = value
        if len(args) > n_positional:
            raise TypeError(f"{d.name}: {len(args)} arguments by position, expected {n_positional}")
        if len(args) < n_required:
            for i in range(n_required):
                if given[i] is _MISSING:
                    raise TypeError(f"{d.name}: `{parameters[i].name}` is missing")
        options = [given[i] for i in at_options]
        chosen = None
        if options != usual:
            chosen = tuple(d.normalised(dict(zip(d.options, options, strict=True))).values())
        wanted = tuple([name for i, name in flags if given[i]])
        inputs = [given[i] for i in at_inputs]
        outputs = call(d, given[at_graph], inputs, chosen, wanted=wanted, by_id=by_id)
        return outputs if wanted else outputs[0]

    function.__name__ = function.__qualname__ = d.name
    function.__module__ = "edgegrad.torch"
    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    function.__doc__ = _docstring(d)
    return function


def _docstring(d: Derivatives) -> str:
    summary = (inspect.getdoc(d.fwd) or "").partition("\n")[0]
    ordered = [a.name for a in (*d.op.inputs, *d.op.outputs) if a.name in d.by_position]
    lines = [
        summary,
        "",
        f"As `edgegrad.operators.{d.op.functions['fwd']}` describes it, with these differences:",
        "the output is returned, gradients are autograd's.",
    ]
    if ordered:
        names = ", ".join(f"`{n}`" for n in ordered)
        lines += [f"Edge arrays are all in the order of the caller's edges, {names} too."]
    args = [*d.op.inputs, *(a for a in d.op.outputs)]
    lines += ["", "Parameters and result", "---------------------"]
    for a in args:
        none = ", or None" if a.optional else ""
        lines.append(f"{a.name} : Tensor ({', '.join(a.axes)}), {a.dtype}{none}")
    return "\n".join(lines)


FUNCTIONS = {d.name: function_of(d) for d in DIFFERENTIABLE}
