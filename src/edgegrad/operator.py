"""The declaration of an operator, which is data, and the check of a call against it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

from edgegrad.errors import wrong_type, wrong_value
from edgegrad.graph import Graph
from edgegrad.interop import ArrayView, overlap, view

FLOATS = ("float16", "bfloat16", "float32", "float64")
HALVES = ("float16", "bfloat16")
BATCH = "[batch]"
UNBATCHED = -1


@dataclass(frozen=True)
class Arg:
    """One array of an operator: its axes by name, its dtype, its role.

    `axes` that begin with ``"[batch]"`` may be given with or without that axis, alike for all
    arrays of a call. `dtype` is ``"T"``, the call's feature type; the name of a companion, which
    is T, or float32 beside half types, alike for all arrays of that name; or an exact dtype,
    or several as in ``"int32|int64"``.
    """

    name: str
    axes: tuple[str, ...]
    dtype: str = "T"
    grad: str = ""  # name of its gradient; none for an input that has no gradient
    optional: bool = False  # None is accepted
    keyword: bool = False  # comes after the options, by keyword
    written: bool = False
    changed: bool = False  # an input that is also written, in place
    column: bool = False  # one axis will do where the last one has size 1
    mapped: bool = False  # beside a GPU, host memory that it can address will do
    narrower: bool = False  # a companion that may also be a half type beside float32


Derived = Callable[[Mapping[str, int]], int]


@dataclass(frozen=True)
class Operator:
    """What an operator takes and returns. Data only: nothing is generated from it.

    One without `graphs` is a single function of its own name, on the device of `leader`.

    Read by `check`, by the framework front ends, by the tests that hold for every operator and by
    the table in docs/operators.md. `derived` computes axes from the sizes of other arrays, graphs
    and options; `keeps` are the inputs and outputs that backward reads.
    """

    name: str
    outputs: tuple[Arg, ...]
    inputs: tuple[Arg, ...]
    graphs: tuple[str, ...]
    keeps: tuple[str, ...] = ()
    saved: tuple[Arg, ...] = ()  # written by forward, read by backward
    derived: Mapping[str, Derived] = field(default_factory=dict)
    source: str = ""
    scratch: str = "none"

    @cached_property
    def fwd(self) -> tuple[Arg, ...]:
        """Arrays of the forward function."""
        written = (replace(a, written=True) for a in (*self.outputs, *self.saved))
        return (*written, *(replace(a, written=True) if a.changed else a for a in self.inputs))

    @cached_property
    def bwd(self) -> tuple[Arg, ...]:
        """Arrays of the backward function: gradients written, gradients read, what was kept."""
        grads = (
            replace(a, name=a.grad, grad="", optional=True, written=True)
            for a in self.inputs
            if a.grad
        )
        read = (replace(a, name=a.grad, grad="") for a in self.outputs)
        kept = (a for a in (*self.inputs, *self.outputs) if a.name in self.keeps)
        return (*grads, *read, *kept, *self.saved)

    @cached_property
    def checked(self) -> dict[str, tuple[Arg, ...]]:
        """Arrays of each half in the order of their check: what binds sizes comes first."""

        def late(a: Arg) -> tuple[bool, bool]:
            return not self.derived.keys().isdisjoint(a.axes), a.written and not a.changed

        return {half: tuple(sorted(getattr(self, half), key=late)) for half in ("fwd", "bwd")}

    @cached_property
    def leader(self) -> str:
        """The array that says where an operator without graphs runs."""
        return next(a.name for a in self.checked["fwd"] if not a.mapped)


@dataclass
class Call:
    """A checked call: views of its arrays (None where None was given), sizes, dtypes, device."""

    where: str
    arrays: dict[str, Any]
    sizes: dict[str, int]
    dtypes: dict[str, str]
    device: str

    @property
    def on_host(self) -> bool:
        """Whether the host backend runs this call."""
        return self.device == "cpu"

    @property
    def n_batch(self) -> int:
        """Number of node arrays side by side; 1 without a batch axis."""
        return self.sizes[BATCH] if self.sizes.get(BATCH, UNBATCHED) != UNBATCHED else 1


def check(
    op: Operator,
    half: Literal["fwd", "bwd"],
    graph: Any,
    given: Mapping[str, Any],
    sizes: Mapping[str, int] | None = None,
    stream_id: int = 0,
) -> Call:
    """View every array of a call and hold it against the declaration.

    Parameters
    ----------
    op, half
        The declaration, and which of its two functions was called.
    graph
        The graph given; its sizes bind the axes of its arrays.
    given
        Array (or None) by argument name.
    sizes
        Numbers that derived axes need beyond those of the graph and the arrays.
    stream_id
        The stream the arrays will be used on.

    Raises
    ------
    ArgumentError
        The first mismatch, in the order of a reader: kind, dtype, device, shape, layout, overlap.
    """
    call = _begin(op, half, graph, given, sizes or {}, stream_id)
    where = call.where
    outputs: list[ArrayView] = []
    inputs: list[ArrayView] = []
    for arg in op.checked[half]:
        array = given[arg.name]
        if array is None:
            if not arg.optional:
                raise wrong_type(where, arg.name, "type NoneType", "an array")
            call.arrays[arg.name] = None
            continue
        a = call.arrays[arg.name] = view(where, arg.name, array, stream_id)
        _check_dtype(call, op.checked[half], arg, a)
        if a.device != call.device and not (arg.mapped and _addressable(a)):
            other = "the graph" if op.graphs else f"`{op.leader}`"
            expected = f"{call.device}, where {other} is"
            raise wrong_value(where, arg.name, f"device {a.device}", expected)
        _check_shape(call, op, arg, a)
        if not a.rows_contiguous:
            raise wrong_value(
                where,
                arg.name,
                f"strides {a.strides}",
                "a last axis that is contiguous (stride 1); rows may be apart",
            )
        (outputs if arg.written else inputs).append(a)
        if arg.written and (a.readonly or a.self_overlapping):
            has = "read-only memory" if a.readonly else f"overlapping rows, strides {a.strides}"
            raise wrong_value(where, arg.name, has, "an array that can be written")
    for i, out in enumerate(outputs):
        for other in (*outputs[:i], *inputs):
            if overlap(out, other):
                names = [n for n, a in call.arrays.items() if a is out or a is other]
                raise wrong_value(
                    where, names[-1], f"memory shared with `{names[0]}`", "memory of its own"
                )
    return call


def _begin(
    op: Operator,
    half: str,
    graph: Any,
    given: Mapping[str, Any],
    sizes: Mapping[str, int],
    stream_id: int,
) -> Call:
    if not op.graphs:
        name = op.leader
        if given[name] is None:
            raise wrong_type(op.name, name, "type NoneType", "an array")
        return Call(
            op.name, {}, dict(sizes), {}, view(op.name, name, given[name], stream_id).device
        )
    where = f"{op.name}_{half}"
    if not isinstance(graph, Graph) or graph.kind not in op.graphs:
        kinds = " or ".join(f"{k}_int32/int64" for k in op.graphs)
        raise wrong_type(where, "graph", f"type {type(graph).__name__}", kinds)
    return Call(where, {}, {**graph.sizes, **sizes}, {}, graph.device)


def _addressable(a: ArrayView) -> bool:
    """Whether host memory is pinned and mapped, so that kernels can work on it."""
    from edgegrad.backends import cuda

    return a.device == "cpu" and cuda.addressable(a.ptr)


def _check_dtype(call: Call, args: tuple[Arg, ...], arg: Arg, a: ArrayView) -> None:
    dtype, known = a.dtype, call.dtypes.get(arg.dtype)
    if known == dtype:
        return
    if known is not None:
        expected = f"{known}, the dtype of `{_first(call, args, arg.dtype)}`"
        raise wrong_type(call.where, arg.name, f"dtype {dtype}", expected)
    beside = ""
    if arg.dtype == "T":
        allowed: tuple[str, ...] = FLOATS
    elif arg.dtype.isupper():
        t = call.dtypes["T"]
        allowed = (t, "float32") if t in HALVES else (t,)
        if arg.narrower and t == "float32":
            allowed = (t, *HALVES)
        beside = f", since `{_first(call, args, 'T')}` has {t}"
    else:
        allowed = tuple(arg.dtype.split("|"))
    if dtype not in allowed:
        raise wrong_type(call.where, arg.name, f"dtype {dtype}", " or ".join(allowed) + beside)
    if "|" not in arg.dtype:
        call.dtypes[arg.dtype] = dtype


def _first(call: Call, args: tuple[Arg, ...], variable: str) -> str:
    """Return the argument that decided a dtype of the call."""
    return next(o.name for o in args if o.dtype == variable and call.arrays[o.name] is not None)


def _check_shape(call: Call, op: Operator, arg: Arg, a: ArrayView) -> None:
    sizes, axes, shape = call.sizes, arg.axes, a.shape
    if axes[0] == BATCH:
        # The first such array of a call decides for all.
        sizes.setdefault(BATCH, shape[0] if len(shape) == len(axes) else UNBATCHED)
        if sizes[BATCH] == UNBATCHED:
            axes = axes[1:]
    if arg.column and len(shape) == len(axes) - 1:
        shape = (*shape, 1)
    if len(shape) == len(axes):
        for axis, n in zip(axes, shape, strict=True):
            if axis not in sizes:
                sizes[axis] = op.derived[axis](sizes) if axis in op.derived else n
            if sizes[axis] != n:
                break
        else:
            return
    for axis in op.derived.keys() & set(axes):
        sizes.setdefault(axis, op.derived[axis](sizes))
    want = ", ".join(f"{x}={sizes[x]}" if x in sizes else x for x in axes)
    raise wrong_value(call.where, arg.name, f"shape {a.shape}", f"({want})")
