"""The declaration of an operator, which is data, and the check of a call against it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any, Literal

from edgegrad.errors import ArgumentError, wrong_type, wrong_value
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

    An axis in brackets, such as ``"[batch]"``, may be given or not, alike for all arrays of a
    call; if it is derived, the options decide. `dtype` is ``"T"``, the call's feature type;
    ``"Idx"``, the ids of the graph; another name in capitals, a companion, which is T, or float32
    beside half types, alike for all arrays of that name; ``"A"``, the accumulator of T; or exact
    dtypes, as in ``"int32|int64"``.
    """

    name: str
    axes: tuple[str, ...]
    dtype: str = "T"
    grad: str = ""  # name of its gradient; none for an input that has no gradient
    grad_dtype: str = ""  # dtype of its gradient if it may be another
    optional: bool = False  # None is accepted
    keyword: bool = False  # comes after the graph and the options, by keyword
    written: bool = False
    changed: bool = False  # an input that is also written, in place
    column: bool = False  # one axis will do where the last one has size 1
    mapped: bool = False  # beside a GPU, host memory that it can address will do
    narrower: bool = False  # a companion that may also be a half type beside float32

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
    and options. Backward reads the inputs and outputs that it `keeps`, in that order; those among
    them that are `hints` it can do without, and those it `may_keep`, which some options need, come
    after the graph. What is saved and optional is left out in inference; backward needs it, but for
    what comes after the graph, which only some options save. `sizes` are the numbers that each half
    is told after the graph.

    Without kinds of `graphs` an operator takes none, and runs where its `leader` is. A `single`
    one is one function of its very name.
    """

    name: str
    outputs: tuple[Arg, ...]
    inputs: tuple[Arg, ...]
    graphs: tuple[str, ...]
    keeps: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    may_keep: tuple[str, ...] = ()
    saved: tuple[Arg, ...] = ()  # written by forward, read by backward
    sizes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    derived: Mapping[str, Derived] = field(default_factory=dict)
    source: str = ""
    scratch: str = "none"
    single: bool = False

    @cached_property
    def fwd(self) -> tuple[Arg, ...]:
        """Arrays of the forward function."""
        written = (replace(a, written=True) for a in (*self.outputs, *self.saved))
        return (*written, *(replace(a, written=True) if a.changed else a for a in self.inputs))

    @cached_property
    def bwd(self) -> tuple[Arg, ...]:
        """Arrays of the backward function: gradients written, gradients read, what was kept."""
        grads = (
            replace(
                a,
                name=a.grad,
                grad="",
                dtype=a.grad_dtype or a.dtype,
                optional=True,
                written=True,
            )
            for a in self.inputs
            if a.grad
        )
        read = (replace(a, name=a.grad, grad="") for a in self.outputs)
        by_name = {a.name: a for a in (*self.inputs, *self.outputs)}
        kept = (
            replace(by_name[name], optional=by_name[name].optional or name in self.hints)
            for name in self.keeps
        )
        late = (replace(by_name[name], optional=True, keyword=True) for name in self.may_keep)
        saved = (replace(a, optional=a.optional and a.keyword) for a in self.saved)
        return (*grads, *read, *kept, *late, *saved)

    @cached_property
    def checked(self) -> dict[str, tuple[Arg, ...]]:
        """Arrays of each half in the order of their check: what binds sizes and T comes first."""

        def late(a: Arg) -> tuple[bool, bool, bool]:
            follows = not self.derived.keys().isdisjoint(a.axes)
            return follows, a.written and not a.changed, a.dtype != "T"

        return {half: tuple(sorted(getattr(self, half), key=late)) for half in ("fwd", "bwd")}

    @cached_property
    def follows(self) -> dict[str, tuple[str, ...]]:
        """The derived axes of every array."""
        args = (*self.fwd, *self.bwd)
        return {a.name: tuple(x for x in a.axes if x in self.derived) for a in args}

    @cached_property
    def plain(self) -> frozenset[str]:
        """The arrays whose axes need no look at the call."""
        args = (*self.fwd, *self.bwd)
        bent = {a.name for a in args if a.column or self.follows[a.name]}
        return frozenset(a.name for a in args) - bent

    @cached_property
    def leader(self) -> dict[str, str]:
        """The array of each half that says where an operator without graphs runs."""
        return {
            half: next((a.name for a in args if not (a.mapped or a.optional)), "")
            for half, args in self.checked.items()
        }

    @cached_property
    def functions(self) -> dict[str, str]:
        """Names of the public functions."""
        return {
            half: self.name if self.single else f"{self.name}_{half}" for half in ("fwd", "bwd")
        }


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

    def rows(self, name: str) -> Any:
        """Return the view of an array as rows x columns, None for None; raise if rows have gaps."""
        a = self.arrays[name]
        if a is None:
            return None
        joined = a.rows()
        if joined is None:
            expected = "heads side by side, without gaps; rows may be apart"
            raise wrong_value(self.where, name, f"strides {a.strides}", expected)
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
    where = op.functions[half]
    if type(stream_id) is not int or not 0 <= stream_id < 2**64:
        has = f"the value {stream_id!r}"
        raise wrong_value(where, "stream_id", has, "a CUDA stream handle, 0 or larger")
    call = _begin(op, half, graph, given, sizes or {}, stream_id)
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
        # As few steps as can be: this loop is most of what a call costs beyond its work.
        dtype = a.dtype
        if call.dtypes.get(arg.dtype) != dtype:
            _bind_dtype(call, op.checked[half], arg, dtype)
        axes = arg.axes if arg.name in op.plain else _axes(call, op, arg, a.ndim)
        device = call.device
        if arg.mapped and a.device != device and _addressable(a):
            device = a.device
        if not a.suits(device, axes, call.sizes, arg.written):
            leader = "the graph" if op.graphs else f"`{op.leader[half]}`"
            raise _mismatch(call, arg, a, axes, device, f"{device}, where {leader} is")
        (outputs if arg.written else inputs).append(a)
    if shared := first_overlap(outputs, inputs):
        names = [n for n, a in call.arrays.items() if a is shared[0] or a is shared[1]]
        raise wrong_value(where, names[-1], f"memory shared with `{names[0]}`", "memory of its own")
    return call


def _begin(
    op: Operator,
    half: Literal["fwd", "bwd"],
    graph: Any,
    given: Mapping[str, Any],
    sizes: Mapping[str, int],
    stream_id: int,
) -> Call:
    where = op.functions[half]
    if op.graphs:
        if not isinstance(graph, Graph) or graph.kind not in op.graphs:
            kinds = " or ".join(f"{k}_int32/int64" for k in op.graphs)
            raise wrong_type(where, "graph", f"type {type(graph).__name__}", kinds)
        return Call(where, {}, {**graph.sizes, **sizes}, {"Idx": graph.index_dtype}, graph.device)
    leader = op.leader[half]
    if given[leader] is None:
        raise wrong_type(where, leader, "type NoneType", "an array")
    device = view(where, leader, given[leader], stream_id).device
    return Call(where, {}, dict(sizes), {}, device)


def _mismatch(
    call: Call, arg: Arg, a: ArrayView, axes: tuple[str, ...], device: str, place: str
) -> ArgumentError:
    """Say the first thing that is wrong with an array that does not suit."""
    if a.device != device:
        return wrong_value(call.where, arg.name, f"device {a.device}", place)
    if not a.fits(axes, call.sizes):
        sizes = {axis: call.sizes.get(axis, axis) for axis in axes}
        want = ", ".join(
            axis if size == axis else f"{axis}={size}"
            for axis, size in sizes.items()
            if size != ABSENT
        )
        return wrong_value(call.where, arg.name, f"shape {a.shape}", f"({want})")
    if not a.rows_contiguous:
        expected = "a last axis that is contiguous (stride 1); rows may be apart"
        return wrong_value(call.where, arg.name, f"strides {a.strides}", expected)
    has = "read-only memory" if a.readonly else f"overlapping rows, strides {a.strides}"
    return wrong_value(call.where, arg.name, has, "an array that can be written")


def _addressable(a: ArrayView) -> bool:
    """Whether host memory is pinned and mapped, so that kernels can work on it."""
    from edgegrad.backends import cuda

    return a.device == "cpu" and cuda.addressable(a.ptr)


def _bind_dtype(call: Call, args: tuple[Arg, ...], arg: Arg, dtype: str) -> None:
    known = call.dtypes.get(arg.dtype)
    if known is not None:
        first = _first(call, args, arg.dtype)
        of = "the index dtype of the graph" if first == arg.name else f"the dtype of `{first}`"
        raise wrong_type(call.where, arg.name, f"dtype {dtype}", f"{known}, {of}")
    t = call.dtypes.get("T", "")
    allowed, shared = allowed_dtypes(arg.dtype, arg.narrower, t)
    if dtype not in allowed:
        beside = ""
        if arg.dtype != "T" and set(allowed) != set(arg.dtype.split("|")):
            beside = f", since `{_first(call, args, 'T')}` has {t}" if t else ""
        raise wrong_type(call.where, arg.name, f"dtype {dtype}", " or ".join(allowed) + beside)
    if shared:
        call.dtypes[arg.dtype] = dtype


@cache  # of a few names
def allowed_dtypes(name: str, narrower: bool, t: str) -> tuple[tuple[str, ...], bool]:
    """Return the dtypes an array may have where T is `t`.

    Also returns whether the first array that has one decides for the others of that name.
    """
    if name == "T":
        return FLOATS, True
    if name == "Idx":
        return ("int32", "int64"), True
    if name != "A" and name.isupper():
        if narrower and t == "float32":
            return (t, *HALVES), True
        return ((t, "float32") if t in HALVES else (t,)), True
    accumulator = "float64" if t == "float64" else "float32"
    names = (accumulator if x == "A" else x for x in name.split("|"))
    return tuple(dict.fromkeys(names)), False


def _first(call: Call, args: tuple[Arg, ...], variable: str) -> str:
    """Return the argument that decided a dtype of the call."""
    seen = (o.name for o in args if o.dtype == variable)
    return next(name for name in seen if call.arrays.get(name) is not None)


def _axes(call: Call, op: Operator, arg: Arg, ndim: int) -> tuple[str, ...]:
    """Return the axes an array must have in this call; those that follow from others get a size."""
    sizes, axes = call.sizes, arg.axes
    for axis in op.follows[arg.name]:
        if axis not in sizes:
            try:
                sizes[axis] = op.derived[axis](sizes)
            except KeyError:  # what it follows from is not given: the array decides
                continue
    if arg.column and ndim == len(axes) - 1:
        sizes.setdefault(axes[-1], 1)
        axes = axes[:-1] if sizes[axes[-1]] == 1 else axes
    return axes
