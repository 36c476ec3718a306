"""A function for every operator that has a gradient, made from its registration."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor

from edgegrad.differentiation import DIFFERENTIABLE, Derivatives, functions
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


def function_of(d: Derivatives, *, by_id: bool = True) -> Callable[..., Any]:
    """Make the function of an operator from its registration; `by_id` is that of `call`."""
    made = call if by_id else functools.partial(call, by_id=False)
    return functions.function_of(d, made, "edgegrad.torch", "Tensor")


FUNCTIONS = {d.name: function_of(d) for d in DIFFERENTIABLE}
