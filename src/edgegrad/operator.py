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
# An axis in brackets may be missing, alike in all arrays of a call that have it.
BATCH = "[batch]"
HEADS = "[heads]"
ABSENT = -1


@dataclass(frozen=True)
class Arg:
    """One array of an operator: its axes by name, its dtype, its role.

    `axes` may begin with ``"[batch]"`` or end with ``"[heads]"``, which may be missing, alike for
    all arrays of a call. `dtype` is ``"T"``, the call's feature type; ``"Idx"``, the ids of the
    graph; the name of a companion, which is T, or float32 beside half types, alike for all arrays
    of that name; or an exact dtype.
    """

    name: str
    axes: tuple[str, ...]
    dtype: str = "T"
    grad: str = ""  # name of its gradient; none for an input that has no gradient
    optional: bool = False  # None is accepted
    keyword: bool = False  # comes after the graph, by default None
    written: bool = False


Derived = Callable[[Mapping[str, int]], int]


@dataclass(frozen=True)
class Operator:
    """What an operator takes and returns. Data only: nothing is generated from it.

    Read by `check`, by the framework front ends, by the tests that hold for every operator and by
    the table in docs/operators.md. `derived` computes axes from the sizes of other arrays, graphs
    and options. Backward reads the inputs and outputs that it `keeps`, in that order, and for some
    options only those that it `may_keep`, after the graph. `sizes` are the numbers that each half
    is told after the graph. Without kinds of `graphs` an operator takes none.
    """

    name: str
    outputs: tuple[Arg, ...]
    inputs: tuple[Arg, ...]
    graphs: tuple[str, ...]
    keeps: tuple[str, ...] = ()
    may_keep: tuple[str, ...] = ()
    saved: tuple[Arg, ...] = ()  # written by forward, read by backward
    sizes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    derived: Mapping[str, Derived] = field(default_factory=dict)
    source: str = ""
    scratch: str = "none"

    @cached_property
    def fwd(self) -> tuple[Arg, ...]:
        """Arrays of the forward function."""
        written = (replace(a, written=True) for a in (*self.outputs, *self.saved))
        return (*written, *self.inputs)

    @cached_property
    def bwd(self) -> tuple[Arg, ...]:
        """Arrays of the backward function: gradients written, gradients read, what was kept."""
        grads = (
            replace(a, name=a.grad, grad="", optional=True, written=True)
            for a in self.inputs
            if a.grad
        )
        read = (replace(a, name=a.grad, grad="") for a in self.outputs)
        by_name = {a.name: a for a in (*self.inputs, *self.outputs)}
        kept = (by_name[name] for name in self.keeps)
        late = (replace(by_name[name], optional=True, keyword=True) for name in self.may_keep)
        return (*grads, *read, *kept, *late, *self.saved)

    @cached_property
    def checked(self) -> dict[str, tuple[Arg, ...]]:
        """Arrays of each half in the order of their check: what binds sizes and T comes first."""

        def late(a: Arg) -> tuple[bool, bool, bool]:
            return not self.derived.keys().isdisjoint(a.axes), a.written, a.dtype != "T"

        return {half: tuple(sorted(getattr(self, half), key=late)) for half in ("fwd", "bwd")}


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
        n = self.sizes.get(BATCH, ABSENT)
        return 1 if n == ABSENT else n


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
        The graph given, whose sizes bind the axes of its arrays; None for an operator without.
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
    call = _begin(op, f"{op.name}_{half}", graph, sizes or {})
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
        call.device = call.device or a.device
        if a.device != call.device:
            there = "graph is" if op.graphs else "other arrays are"
            raise wrong_value(
                where, arg.name, f"device {a.device}", f"{call.device}, where the {there}"
            )
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


def _begin(op: Operator, where: str, graph: Any, sizes: Mapping[str, int]) -> Call:
    if not op.graphs:
        return Call(where, {}, dict(sizes), {}, "")
    if not isinstance(graph, Graph) or graph.kind not in op.graphs:
        kinds = " or ".join(f"{k}_int32/int64" for k in op.graphs)
        raise wrong_type(where, "graph", f"type {type(graph).__name__}", kinds)
    return Call(where, {}, {**graph.sizes, **sizes}, {"Idx": graph.index_dtype}, graph.device)


def _check_dtype(call: Call, args: tuple[Arg, ...], arg: Arg, a: ArrayView) -> None:
    dtype, known = a.dtype, call.dtypes.get(arg.dtype)
    if known == dtype:
        return
    if known is not None:
        first = _first(call, args, arg.dtype)
        of = "the index dtype of the graph" if first == arg.name else f"the dtype of `{first}`"
        raise wrong_type(call.where, arg.name, f"dtype {dtype}", f"{known}, {of}")
    beside = ""
    if arg.dtype == "T":
        allowed: tuple[str, ...] = FLOATS
    elif arg.dtype == "Idx":
        allowed = ("int32", "int64")
    elif arg.dtype.isalpha():
        t = call.dtypes["T"]
        allowed = (t, "float32") if t in HALVES else (t,)
        beside = f", since `{_first(call, args, 'T')}` has {t}"
    else:
        allowed = (arg.dtype,)
    if dtype not in allowed:
        raise wrong_type(call.where, arg.name, f"dtype {dtype}", " or ".join(allowed) + beside)
    call.dtypes[arg.dtype] = dtype


def _first(call: Call, args: tuple[Arg, ...], variable: str) -> str:
    """Return the argument that decided a dtype of the call."""
    seen = (o.name for o in args if o.dtype == variable)
    return next(name for name in seen if call.arrays.get(name) is not None)


def _check_shape(call: Call, op: Operator, arg: Arg, a: ArrayView) -> None:
    sizes, axes, shape = call.sizes, arg.axes, a.shape
    if axes[0] == BATCH:
        axes = _drop_missing(BATCH, 0, axes, shape, sizes)
    if axes[-1] == HEADS:
        axes = _drop_missing(HEADS, -1, axes, shape, sizes)
    if len(shape) == len(axes):
        for axis, n in zip(axes, shape, strict=True):
            if axis not in sizes:
                sizes[axis] = _derived(op, axis, sizes, n) if axis in op.derived else n
            if sizes[axis] != n:
                break
        else:
            return
    want = ", ".join(f"{x}={sizes[x]}" if x in sizes else x for x in axes)
    raise wrong_value(call.where, arg.name, f"shape {shape}", f"({want})")


def _drop_missing(
    axis: str, end: int, axes: tuple[str, ...], shape: tuple[int, ...], sizes: dict[str, int]
) -> tuple[str, ...]:
    """Return the axes without an optional one if the call has none; its first array decides."""
    if axis not in sizes:
        sizes[axis] = shape[end] if len(shape) == len(axes) else ABSENT
    return tuple(x for x in axes if x != axis) if sizes[axis] == ABSENT else axes


def _derived(op: Operator, axis: str, sizes: Mapping[str, int], n: int) -> int:
    """Return the size of an axis that is `n` here, if what it depends on is not given."""
    try:
        return op.derived[axis](sizes)
    except KeyError:
        return n
