"""The kernels as torch operators without autograd, one for each half of an operator.

They are made from the registrations. All take the arrays that their half reads, then the graph's
token and sizes and the options, and return new tensors. Their fake kernels check shapes and dtypes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from edgegrad.differentiation import (
    DIFFERENTIABLE,
    Derivatives,
    Result,
    backward_results,
    forward_results,
)
from edgegrad.differentiation.shapes import Shape, read_by, told
from edgegrad.torch.graphs import SIZES, maps, struct_of

DTYPES = {
    name: getattr(torch, name)
    for name in ("float16", "bfloat16", "float32", "float64", "int32", "int64", "bool")
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
_LIBRARY = torch.library.Library("edgegrad", "DEF")
# Types of options by their annotation in the operator's signature.
_TYPES = {"AggOp | str": "str", "int | None": "int?"}

Kernel = Callable[..., list[Tensor]]


def dtype_name(a: Tensor | None) -> str | None:
    """Return the name of a tensor's dtype."""
    return None if a is None else _name(a.dtype)


def flat(shapes: Iterable[Shape | None]) -> list[int]:
    """Return shapes in one list of numbers, each after its length; -1 for None."""
    numbers: list[int] = []
    for shape in shapes:
        numbers += [-1] if shape is None else [len(shape), *shape]
    return numbers


def shapes_from(d: Derivatives, numbers: Sequence[int]) -> dict[str, Shape | None]:
    """Return the shape of every input from what `flat` made of them."""
    found: dict[str, Shape | None] = {}
    begin = 0
    for a in d.op.inputs:
        n = numbers[begin]
        found[a.name] = None if n < 0 else tuple(numbers[begin + 1 : begin + 1 + n])
        begin += 1 + max(n, 0)
    return found


def _rows(a: Tensor | None) -> Tensor | None:
    """Return a tensor in a layout that kernels read: rows may be apart, not what is in them."""
    if a is None or (a.dim() == 2 and a.stride(1) == 1):
        return a
    return a.contiguous()


class _Plan(NamedTuple):
    """What a call writes and is told, by the names of the explicit function."""

    results: tuple[tuple[str, tuple[int, ...], torch.dtype], ...]
    told: dict[str, Any]  # options, numbers, and None for what is not written

    @classmethod
    def of(cls, results: Iterable[Result], **told: Any) -> _Plan:
        """Make a plan of results with names of dtypes."""
        return cls(tuple((r.name, r.shape, DTYPES[r.dtype]) for r in results), told)

    def new(self, device: torch.device) -> list[Tensor]:
        """Allocate what the call writes."""
        return [torch.empty(shape, dtype=t, device=device) for _, shape, t in self.results]

    def run(
        self, function: Callable[..., None], read: Iterable[tuple[str, Tensor | None]],
        like: Tensor, token: Tensor | None,
    ) -> list[Tensor]:  # fmt: skip
        """Call an explicit function on tensors, on the current stream of their device."""
        device, arguments, made = like.device, self.told.copy(), []
        for name, shape, dtype in self.results:
            arguments[name] = a = torch.empty(shape, dtype=dtype, device=device)
            made.append(a)
        for name, a in read:
            arguments[name] = a if a is None or a.is_contiguous() else _rows(a)
        if token is not None:
            arguments["graph"] = struct_of(token)
        if like.is_cuda:
            arguments["stream_id"] = torch.cuda.current_stream(like.device).cuda_stream
        function(**arguments)
        return made


def _forward(d: Derivatives) -> tuple[Kernel, Kernel]:
    names, n = tuple(a.name for a in d.op.inputs), len(d.op.inputs)
    none = dict.fromkeys(a.name for a in (*d.op.outputs, *d.op.saved))
    ids = next((i for i, a in enumerate(d.op.inputs) if a.dtype == "Idx"), 0)

    def plan(facts: Sequence[Any], index_dtype: Any, rest: Sequence[Any], counts: Any) -> _Plan:
        wanted, *options = rest
        chosen = dict(zip(d.options, options, strict=True))
        shapes = {k: fact and fact[0] for k, fact in zip(names, facts, strict=True)}
        dtypes = {k: fact and _name(fact[1]) for k, fact in zip(names, facts, strict=True)}
        sizes: dict[str, int] = dict(zip(SIZES, counts, strict=False))
        results = forward_results(
            d, sizes, _name(index_dtype), chosen, shapes, dtypes, wanted.split(",")
        )
        beside = told(d, "fwd", sizes, chosen, shapes)
        return _Plan.of(results, **none, **chosen, **beside)

    remembered = functools.lru_cache(maxsize=512)(plan)

    def planned(find: Callable[..., _Plan], args: Sequence[Any]) -> _Plan:
        facts = tuple([None if a is None else (a.shape, a.dtype) for a in args[:n]])
        index_dtype = (args[ids] if args[n] is None else args[n]).dtype
        return find(facts, index_dtype, args[n + 2 :], tuple(args[n + 1]))

    def kernel(*args: Any) -> list[Tensor]:
        read = zip(names, args, strict=False)
        return planned(remembered, args).run(d.fwd, read, _first(args), args[n])

    return kernel, lambda *args: planned(plan, args).new(_first(args).device)


def _backward(d: Derivatives) -> tuple[Kernel, Kernel]:
    names, n = read_by(d), len(read_by(d))
    none = dict.fromkeys(a.name for a in d.op.bwd if a.written)
    variables = tuple(a.name for a in d.variables)

    def plan(numbers: Sequence[int], rest: Sequence[Any], counts: Sequence[int]) -> _Plan:
        dtypes, *options = rest
        chosen, shapes = dict(zip(d.options, options, strict=True)), shapes_from(d, numbers)
        asked = zip(variables, dtypes.split(","), strict=True)
        results = backward_results(d, shapes, {k: dtype for k, dtype in asked if dtype})
        beside = told(d, "bwd", dict(zip(SIZES, counts, strict=False)), chosen, shapes)
        return _Plan.of(results, **none, **chosen, **beside)

    remembered = functools.lru_cache(maxsize=512)(plan)

    def planned(find: Callable[..., _Plan], args: Sequence[Any]) -> _Plan:
        return find(tuple(args[n + 2]), args[n + 3 :], tuple(args[n + 1]))

    def kernel(*args: Any) -> list[Tensor]:
        read = zip(names, args, strict=False)
        return planned(remembered, args).run(d.bwd, read, _first(args), args[n])

    return kernel, lambda *args: planned(plan, args).new(_first(args).device)


def _name(dtype: torch.dtype) -> str:
    return NAMES.get(dtype) or str(dtype).removeprefix("torch.")


def _first(args: Iterable[Any]) -> Tensor:
    for a in args:
        if a is not None:
            return a
    raise TypeError("a call needs an array")


def _options(d: Derivatives) -> list[str]:
    return [f"{_TYPES.get(p.annotation, p.annotation)} {k}" for k, p in d.options.items()]


def _define(name: str, parameters: list[str], pair: tuple[Kernel, Kernel]) -> Kernel:
    """Make a torch operator of a kernel and its fake; return a function that calls it."""
    kernel, fake = pair
    _LIBRARY.define(f"{name}({', '.join(parameters)}) -> Tensor[]")
    for device in ("CPU", "CUDA"):
        _LIBRARY.impl(name, kernel, device)
    torch.library.register_fake(f"edgegrad::{name}", fake, lib=_LIBRARY)
    operator = getattr(torch.ops.edgegrad, name).default

    def call(*args: Any) -> list[Tensor]:
        return (kernel if _nobody_watches(args) else operator)(*args)

    return call


_PLAIN = {Tensor, torch.nn.Parameter, type(None), tuple, list, str, int, float, bool}


def _nobody_watches(args: tuple[Any, ...]) -> bool:
    """Whether a call may go past torch's dispatcher, which costs more than a small operator.

    So it may where tensors are just tensors: not those of a tracer, and under no mode that sees
    every operator, such as a counter of operations.
    """
    return torch._C._len_torch_dispatch_stack() == 0 and _PLAIN.issuperset(map(type, args))


def _define_halves(d: Derivatives) -> tuple[Kernel, Kernel]:
    graph = ["Tensor? graph", "SymInt[] counts"]
    inputs = [f"Tensor{'?' * a.optional} {a.name}" for a in d.op.inputs]
    read = [f"Tensor? {name}" for name in read_by(d)]
    told = ["SymInt[] shapes", "str dtypes"]
    forward, backward = (d.op.functions[half] for half in ("fwd", "bwd"))
    return (
        _define(forward, [*inputs, *graph, "str wanted", *_options(d)], _forward(d)),
        _define(backward, [*read, *graph, *told, *_options(d)], _backward(d)),
    )


FORWARD, BACKWARD = {}, {}
for _d in DIFFERENTIABLE:
    FORWARD[_d.name], BACKWARD[_d.name] = _define_halves(_d)


def _by_position(a: Tensor, graph: Tensor) -> Tensor:
    return a.index_select(0, maps(struct_of(graph))[0])


def _by_id(a: Tensor, graph: Tensor) -> Tensor:
    return a.index_select(0, maps(struct_of(graph))[1])


def _define_order(name: str, kernel: Callable[[Tensor, Tensor], Tensor]) -> Any:
    _LIBRARY.define(f"{name}(Tensor a, Tensor graph) -> Tensor")
    for device in ("CPU", "CUDA"):
        _LIBRARY.impl(name, kernel, device)

    def fake(a: Tensor, graph: Tensor) -> Tensor:
        return torch.empty_like(a, memory_format=torch.contiguous_format)

    torch.library.register_fake(f"edgegrad::{name}", fake, lib=_LIBRARY)
    return getattr(torch.ops.edgegrad, name).default


BY_POSITION, BY_ID = _define_order("by_position", _by_position), _define_order("by_id", _by_id)
