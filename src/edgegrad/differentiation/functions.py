"""The public function of an operator in a framework, made from its registration."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from edgegrad.differentiation.registry import Derivatives

# Takes the registration, the graph, a value for every input, a normalised one for every option (or
# None where all are at their defaults), and as `wanted` the names of optional outputs.
Caller = Callable[..., tuple[Any, ...]]
_MISSING: Any = object()


def function_of(d: Derivatives, call: Caller, module: str, array: str) -> Callable[..., Any]:
    """Make the function of an operator.

    Parameters
    ----------
    d
        The registration.
    call
        What makes the call and returns its outputs.
    module
        The public module that the function belongs to.
    array
        What the docstring calls its arrays.

    Returns
    -------
    callable
        Of the parameters of forward that are read, and ``return_<name>`` for every optional output.
    """
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
        outputs = call(d, given[at_graph], inputs, chosen, wanted=wanted)
        return outputs if wanted else outputs[0]

    function.__name__ = function.__qualname__ = d.name
    function.__module__ = module
    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    function.__doc__ = _docstring(d, array)
    return function


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


def _docstring(d: Derivatives, array: str) -> str:
    summary = (inspect.getdoc(d.fwd) or "").partition("\n")[0]
    ordered = [a.name for a in (*d.op.inputs, *d.op.outputs) if a.name in d.by_position]
    lines = [
        summary,
        "",
        f"As `edgegrad.operators.{d.op.functions['fwd']}` describes it, with these differences:",
        "the output is returned, gradients are the framework's.",
    ]
    if ordered:
        names = ", ".join(f"`{n}`" for n in ordered)
        lines += [f"Edge arrays are all in the order of the caller's edges, {names} too."]
    lines += ["", "Parameters and result", "---------------------"]
    for a in (*d.op.inputs, *d.op.outputs):
        none = ", or None" if a.optional else ""
        lines.append(f"{a.name} : {array} ({', '.join(a.axes)}), {a.dtype}{none}")
    return "\n".join(lines)
