"""The declaration of an operator, which is data, and the check of a call against it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

from edgegrad.errors import wrong_type, wrong_value
from edgegrad.graph import Graph
from edgegrad.interop import ArrayView, first_overlap, view

FLOATS = ("float16", "bfloat16", "float32", "float64")
HALVES = ("float16", "bfloat16")
BATCH = "[batch]"
HEADS = "[heads]"
ABSENT = -1  # size of an axis in brackets that the arrays of a call do not have


@dataclass(frozen=True)
class Arg:
    """One array of an operator: its axes by name, its dtype, its role.

    An axis in brackets, such as ``"[batch]"``, may be given or not, alike for all arrays of a call;
    if it is derived, the options decide. `dtype` is ``"T"``, the call's feature type; the name of a
    companion, which is T, or float32 beside half types, alike for all arrays of that name; or an
    exact dtype.
    """

    name: str
    axes: tuple[str, ...]
    dtype: str = "T"
    grad: str = ""  # name of its gradient; none for an input that has no gradient
    optional: bool = False  # None is accepted
    keyword: bool = False  # comes after the options, by keyword
    written: bool = False

    @cached_property
    def brackets(self) -> tuple[str, ...]:
        """The axes that a call may leave out."""
        return tuple(axis for axis in self.axes if axis[0] == "[")


Derived = Callable[[Mapping[str, int]], int]


@dataclass(frozen=True)
class Operator:
    """What an operator takes and returns. Data only: nothing is generated from it.

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
        kept = (a for a in (*self.inputs, *self.outputs) if a.name in self.keeps)
        return (*grads, *read, *kept, *self.saved)

    @cached_property
    def checked(self) -> dict[str, tuple[Arg, ...]]:
        """Arrays of each half in the order of their check: what binds sizes comes first."""

        def late(a: Arg) -> tuple[bool, bool]:
            return not self.derived.keys().isdisjoint(a.axes), a.written

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
        return self._size_or_one(BATCH)

    @property
    def n_heads(self) -> int:
        """Number of heads side by side; 1 without that axis."""
        return self._size_or_one(HEADS)

    def _size_or_one(self, axis: str) -> int:
        size = self.sizes.get(axis, ABSENT)
        return 1 if size == ABSENT else size

    def rows(self, name: str) -> ArrayView | None:
        """Return an array as rows x columns (None for None); raise if its rows are not runs."""
        a = self.arrays[name]
        if a is None:
            return None
        joined = a.rows()
        if joined is None:
            has = f"strides {a.strides}"
            expected = "heads side by side, without gaps; rows may be apart"
            raise wrong_value(self.where, name, has, expected)
        return joined


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
    where = f"{op.name}_{half}"
    if not isinstance(graph, Graph) or graph.kind not in op.graphs:
        kinds = " or ".join(f"{k}_int32/int64" for k in op.graphs)
        raise wrong_type(where, "graph", f"type {type(graph).__name__}", kinds)
    call = Call(where, {}, {**graph.sizes, **(sizes or {})}, {}, graph.device)
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
        # Everything at once: this loop is most of what a call costs beyond its work.
        dtype, device, rows_contiguous = a.facts
        if call.dtypes.get(arg.dtype) != dtype:
            _bind_dtype(call, op.checked[half], arg, dtype)
        if device != call.device:
            expected = f"{call.device}, where the graph is"
            raise wrong_value(where, arg.name, f"device {device}", expected)
        axes = _axes(call, op, arg, a.ndim)
        if not a.fits(axes, call.sizes):
            want = ", ".join(f"{x}={call.sizes[x]}" if x in call.sizes else x for x in axes)
            raise wrong_value(where, arg.name, f"shape {a.shape}", f"({want})")
        if not rows_contiguous:
            expected = "a last axis that is contiguous (stride 1); rows may be apart"
            raise wrong_value(where, arg.name, f"strides {a.strides}", expected)
        (outputs if arg.written else inputs).append(a)
        if arg.written and not a.writable:
            has = "read-only memory" if a.readonly else f"overlapping rows, strides {a.strides}"
            raise wrong_value(where, arg.name, has, "an array that can be written")
    if shared := first_overlap(outputs, inputs):
        names = [n for n, a in call.arrays.items() if a is shared[0] or a is shared[1]]
        raise wrong_value(where, names[-1], f"memory shared with `{names[0]}`", "memory of its own")
    return call


def _bind_dtype(call: Call, args: tuple[Arg, ...], arg: Arg, dtype: str) -> None:
    known = call.dtypes.get(arg.dtype)
    if known is not None:
        expected = f"{known}, the dtype of `{_first(call, args, arg.dtype)}`"
        raise wrong_type(call.where, arg.name, f"dtype {dtype}", expected)
    beside = ""
    if arg.dtype == "T":
        allowed: tuple[str, ...] = FLOATS
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
    return next(o.name for o in args if o.dtype == variable and call.arrays[o.name] is not None)


def _axes(call: Call, op: Operator, arg: Arg, ndim: int) -> tuple[str, ...]:
    """Return the axes an array must have in this call; those that follow from others get a size."""
    sizes, axes = call.sizes, arg.axes
    if op.derived:
        for axis in axes:
            if axis in op.derived and axis not in sizes:
                sizes[axis] = op.derived[axis](sizes)
    for axis in arg.brackets:
        # The first such array of a call decides for all; `fits` then binds the size.
        if axis not in sizes and ndim != len(axes):
            sizes[axis] = ABSENT
        if sizes.get(axis) == ABSENT:
            axes = tuple(x for x in axes if x != axis)
    return axes
