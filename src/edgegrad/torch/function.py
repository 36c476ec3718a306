"""Operators under autograd: forward and backward are each a function with a derivative.

Everything that is not a tensor goes by plain numbers and strings, which tracers can follow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from edgegrad.differentiation import Derivatives, Gradients, derivatives, second_derivatives
from edgegrad.differentiation.shapes import read_by
from edgegrad.torch import kernels
from edgegrad.torch.graphs import SIZES, Reference
from edgegrad.torch.kernels import NAMES, dtype_name, flat, shapes_from

Numbers = Sequence[int]


class Plan(NamedTuple):
    """What follows from the options of a call alone."""

    written: tuple[str, ...]  # names of what forward returns, in order
    saved: tuple[int, ...]  # which of them backward needs and nobody else
    # Arrays to keep, by their place among the inputs of forward followed by what it wrote; for
    # every array that backward may read, after the gradients, its place among those; -1: not kept.
    kept: tuple[int, ...]
    reads: tuple[int, ...]


_PLANS: dict[tuple[Any, ...], Plan] = {}


def plan(name: str, wanted: str, options: tuple[Any, ...]) -> Plan:
    """Return the plan of a call; a dictionary remembers it, since every call asks."""
    found = _PLANS.get((name, wanted, options))
    if found is None:
        d, optional = derivatives(name), wanted.split(",")
        chosen = dict(zip(d.options, options, strict=True))
        saved = d.saves(chosen)
        outputs = [a.name for a in d.op.outputs if not a.optional or a.name in optional]
        written, needed = (*outputs, *saved), (*d.reads(chosen), *saved)
        arrays = [*(a.name for a in d.op.inputs), *written]
        late = read_by(d)[len(d.op.outputs) :]
        kept = [k for k in late if k in needed and k in arrays]
        found = Plan(
            written,
            tuple(range(len(outputs), len(written))),
            tuple(arrays.index(k) for k in kept),
            tuple(kept.index(k) if k in kept else -1 for k in late),
        )
        _PLANS[name, wanted, options] = found
    return found


def _run_forward(
    name: str,
    token: Tensor | None,
    counts: Numbers,
    wanted: str,
    options: tuple[Any, ...],
    grad_dtypes: tuple[str, ...],
    *inputs: Tensor | None,
) -> tuple[Tensor, ...]:
    return tuple(kernels.FORWARD[name](*inputs, token, counts, wanted, *options))


def _keep_for_backward(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    p, arrays = plan(inputs[0], inputs[3], inputs[4]), inputs[_HEAD:] + output
    ctx.set_materialize_grads(False)
    if p.saved:
        ctx.mark_non_differentiable(*[output[i] for i in p.saved])
    ctx.save_for_backward(inputs[1], *[arrays[i] for i in p.kept])
    ctx.call = inputs[:_HEAD]
    # Of arrays that are not kept, shapes and dtypes are.
    ctx.facts = [None if a is None else (a.shape, a.dtype) for a in arrays]


def _gradients(ctx: Any, *gradients: Tensor | None) -> tuple[Any, ...]:
    if all(g is None for g in gradients):  # zero everywhere, as torch says it
        return (None,) * len(ctx.needs_input_grad)
    name, _, counts, wanted, options, grad_dtypes = ctx.call
    d, n = derivatives(name), len(gradients)
    token, *saved = ctx.saved_tensors
    inputs, output, p = ctx.facts[:-n], ctx.facts[-n], plan(name, wanted, options)
    kept = [None if i < 0 else saved[i] for i in p.reads]
    given = dict(zip(p.written, gradients, strict=True))
    outputs = [given.get(a.name) for a in d.op.outputs]
    if outputs[0] is None:
        like = next(g for g in outputs if g is not None)
        outputs[0] = torch.zeros(output[0], dtype=output[1], device=like.device)
    needed, dtypes = ctx.needs_input_grad[_HEAD:], []
    for i, a in enumerate(d.op.inputs):
        if a.grad:
            dtypes.append((grad_dtypes[i] or NAMES[inputs[i][1]]) if needed[i] else "")
    shapes = flat(fact and fact[0] for fact in inputs)
    head = (name, token, counts, shapes, ",".join(dtypes), options)
    found = iter(backward(*head, *outputs, *kept))
    asked = (bool(a.grad) and needed[i] for i, a in enumerate(d.op.inputs))
    return (None,) * _HEAD + tuple(next(found) if one else None for one in asked)


def _run_backward(
    name: str,
    token: Tensor | None,
    counts: Numbers,
    shapes: Numbers,
    dtypes: str,
    options: tuple[Any, ...],
    *reads: Tensor | None,
) -> tuple[Tensor, ...]:
    return tuple(kernels.BACKWARD[name](*reads, token, counts, shapes, dtypes, *options))


def _keep_for_second(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    name, token, counts, shapes, dtypes, options, *reads = inputs
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(token, *reads)
    ctx.call = (name, counts, shapes, dtypes, options)


def _second_gradients(ctx: Any, *cotangents: Tensor | None) -> tuple[Any, ...]:
    if all(c is None for c in cotangents):
        return (None,) * len(ctx.needs_input_grad)
    name, counts, shapes, dtypes, options = ctx.call
    d = derivatives(name)
    token, *reads = ctx.saved_tensors
    named = dict(zip(read_by(d), reads, strict=True))
    needed = dict(zip(read_by(d), ctx.needs_input_grad[_HEAD:], strict=True))
    asked = [a.name for a, dtype in zip(d.variables, dtypes.split(","), strict=True) if dtype]
    known = dict(zip(asked, cotangents, strict=True))
    kept_inputs = [a.name for a in d.op.inputs if a.name in named]
    kept_outputs = [a.name for a in d.op.outputs if a.name in named]
    call = Gradients(
        graph=Reference(token, counts),
        options=dict(zip(d.options, options, strict=True)),
        outputs={a.name: named[a.grad] for a in d.op.outputs},
        inputs={a.name: named.get(a.name) for a in d.op.inputs},
        results={k: named[k] for k in kept_outputs},
        shapes=shapes_from(d, shapes),
        cotangents={a.name: known.get(a.name) for a in d.variables},
        needed=[k for k in (*kept_inputs, *kept_outputs) if needed[k]],
    )
    found = second_derivatives(FRONT, d, call)
    by_name = {a.grad: found["outputs"].get(a.name) for a in d.op.outputs}
    by_name.update(found.get("inputs", {}))
    by_name.update(found.get("results", {}))
    return (None,) * _HEAD + tuple(by_name.get(k) if needed[k] else None for k in read_by(d))


def _run_permutation(a: Tensor, token: Tensor, to_id: bool) -> Tensor:
    return (kernels.BY_ID if to_id else kernels.BY_POSITION)(a, token)


def _keep_for_inverse(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    _, token, ctx.to_id = inputs
    ctx.save_for_backward(token)


def _inverse(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
    (token,) = ctx.saved_tensors
    return permute(gradient, token, not ctx.to_id), None, None


def _one_by_one(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a rule of vmap that calls for each element: kernels take one at a time."""

    def vmap(info: Any, in_dims: tuple[Any, ...], *args: Any) -> Any:
        made = []
        for i in range(info.batch_size):
            one = [
                a.select(dim, i) if isinstance(dim, int) else a
                for a, dim in zip(args, in_dims, strict=True)
            ]
            made.append(function(*one))
        if isinstance(made[0], Tensor):
            return torch.stack(made), 0
        outputs = tuple(torch.stack(parts) for parts in zip(*made, strict=True))
        return outputs, (0,) * len(outputs)

    return vmap


def _under_autograd(name: str, run: Any, keep: Any, derive: Any) -> Callable[..., Any]:
    """Make a function of what runs, what it keeps for its gradients, and these gradients.

    torch has two forms of such a function. The one for torch.func, with `setup_context`, costs
    three times as much per call, so it serves torch.func alone. Tracers put the call into their
    graph as it is: inside torch.func.grad they would lose the gradients of a function they trace.
    """

    def forward(ctx: Any, *args: Any) -> Any:
        output = run(*args)
        keep(ctx, args, output)
        return output

    @torch.compiler.allow_in_graph
    def apply(*args: Any) -> Any:
        if torch._C._are_functorch_transforms_active():
            return transformed.apply(*args)
        if torch.is_grad_enabled():
            for a in args:
                if isinstance(a, Tensor) and a.requires_grad:
                    return plain.apply(*args)
        return run(*args)

    rules = {"backward": staticmethod(derive)}
    plain: Any = type(name, (torch.autograd.Function,), {"forward": staticmethod(forward), **rules})
    rules |= {"forward": staticmethod(run), "setup_context": staticmethod(keep)}
    rules |= {"vmap": staticmethod(_one_by_one(apply))}
    transformed: Any = type(name, (torch.autograd.Function,), rules)
    return apply


_HEAD = 6  # arguments of `forward` and `backward` before the arrays
# Takes what `_run_forward` does; returns the outputs of an operator, then what it saved.
forward = _under_autograd("Forward", _run_forward, _keep_for_backward, _gradients)
# Takes what `_run_backward` does; returns the gradients asked for, in order.
backward = _under_autograd("Backward", _run_backward, _keep_for_second, _second_gradients)
# An edge array in CSC order of one by edge id, or the other way round.
permute = _under_autograd("Permute", _run_permutation, _keep_for_inverse, _inverse)


def permuted(graph: Reference, a: Tensor, *, to_id: bool) -> Tensor:
    """Return an edge array by edge id of one in CSC order, or the other way round."""
    mapped = graph.counts[SIZES.index("mapped")]
    return permute(a, graph.token, to_id) if mapped else a


class _TorchFront:
    """What the rules of second derivatives are written in, for torch."""

    def counts(self, graph: Reference) -> Mapping[str, int]:
        return dict(zip(SIZES, graph.counts, strict=True))

    def forward(
        self, d: Derivatives, graph: Reference, options: Mapping[str, Any], inputs: Any
    ) -> Any:
        arrays = [inputs.get(a.name) for a in d.op.inputs]
        values, n = tuple(options[k] for k in d.options), len(arrays)
        return forward(d.name, graph.token, graph.counts, "", values, ("",) * n, *arrays)[0]

    def backward(
        self,
        d: Derivatives,
        graph: Reference,
        options: Mapping[str, Any],
        inputs: Mapping[str, Any],
        gradient: Tensor,
        wanted: Sequence[str],
    ) -> dict[str, Tensor]:
        arrays = {a.name: inputs.get(a.name) for a in d.op.inputs}
        shapes = flat(None if a is None else a.shape for a in arrays.values())
        asked = [a.name for a in d.variables if a.name in wanted]
        told = (dtype_name(arrays[a.name]) if a.name in asked else "" for a in d.variables)
        reads = (gradient, *(arrays.get(k) for k in read_by(d)[1:]))
        values = tuple(options[k] for k in d.options)
        head = (d.name, graph.token, graph.counts, shapes, ",".join(map(str, told)), values)
        return dict(zip(asked, backward(*head, *reads), strict=True))

    def vjp(self, function: Callable[..., Any], *arrays: Tensor) -> Any:
        return torch.func.vjp(function, *arrays)

    def by_position(self, graph: Reference, array: Tensor) -> Tensor:
        return permuted(graph, array, to_id=False)

    def by_id(self, graph: Reference, array: Tensor) -> Tensor:
        return permuted(graph, array, to_id=True)

    def zeros(self, shape: Sequence[int], like: Tensor) -> Tensor:
        return torch.zeros(tuple(shape), dtype=like.dtype, device=like.device)

    def ones(self, shape: Sequence[int], like: Tensor) -> Tensor:
        return torch.ones(tuple(shape), dtype=like.dtype, device=like.device)

    def cast(self, array: Tensor, like: Tensor) -> Tensor:
        return array.to(like.dtype)

    def accurate(self, array: Tensor) -> Tensor:
        return array.float() if array.dtype in (torch.float16, torch.bfloat16) else array

    def where(self, condition: Tensor, yes: Tensor, no: Tensor) -> Tensor:
        return torch.where(condition, yes, no)

    def exp(self, array: Tensor) -> Tensor:
        return torch.exp(array)

    def tanh(self, array: Tensor) -> Tensor:
        return torch.tanh(array)

    def concatenate(self, arrays: Sequence[Tensor], axis: int) -> Tensor:
        return torch.cat(tuple(arrays), axis)


FRONT = _TorchFront()
