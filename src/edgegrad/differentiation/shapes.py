"""What a call writes, from the shapes and dtypes of what it reads: nothing is allocated here.

Sizes may be symbols of a tracer: they are added, multiplied and compared, never converted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from edgegrad.differentiation.registry import Derivatives, Options, Sizes
from edgegrad.errors import wrong_type, wrong_value
from edgegrad.operator import ABSENT, Arg, allowed_dtypes

Shape = Sequence[int]


@dataclass(frozen=True)
class Result:
    """An array that a call writes."""

    name: str
    shape: tuple[int, ...]
    dtype: str


def sizes_of(
    d: Derivatives, counts: Sizes, options: Options, shapes: Mapping[str, Shape | None]
) -> dict[str, int]:
    """Return the size of every axis of a forward call; that of an axis left out is ABSENT.

    Parameters
    ----------
    d
        The registration.
    counts
        Sizes of the graph, by name.
    options
        All options, normalised.
    shapes
        Shape of every input, None for those that are None.

    Raises
    ------
    ArgumentError
        If a shape does not fit the declaration or the others.
    """
    where = d.op.functions["fwd"]
    sizes = {**counts, **d.sizes(counts, options)}
    for arg in d.op.inputs:
        shape = shapes[arg.name]
        if shape is None:
            if not arg.optional:
                raise wrong_type(where, arg.name, "type NoneType", "an array")
            continue
        axes = _axes(arg, len(shape), sizes)
        for axis, size in zip(axes, shape, strict=False):
            if axis in d.op.derived and axis not in sizes:
                continue
            if sizes.setdefault(axis, size) != size or len(axes) != len(shape):
                want = ", ".join(f"{x}={sizes[x]}" if x in sizes else x for x in axes)
                raise wrong_value(where, arg.name, f"shape {tuple(shape)}", f"({want})")
        if len(axes) != len(shape):
            raise wrong_value(where, arg.name, f"shape {tuple(shape)}", f"({', '.join(axes)})")
    return sizes


def _axes(arg: Arg, ndim: int, sizes: dict[str, int]) -> tuple[str, ...]:
    """Return the axes an array has, of which those in brackets may be left out."""
    axes = arg.axes
    for axis in arg.brackets:
        if axis not in sizes and ndim != len(axes):
            sizes[axis] = ABSENT
        if sizes.get(axis) == ABSENT:
            axes = tuple(x for x in axes if x != axis)
    return axes


def forward_results(
    d: Derivatives,
    counts: Sizes,
    index_dtype: str,
    options: Options,
    shapes: Mapping[str, Shape | None],
    dtypes: Mapping[str, str | None],
    wanted: Sequence[str] = (),
) -> tuple[Result, ...]:
    """Return what forward writes: its outputs, then what it saves for backward.

    Parameters are those of `sizes_of`, and

    Parameters
    ----------
    index_dtype
        Dtype of the graph's ids; "" for operators without a graph.
    dtypes
        Dtype name of every input, None for those that are None.
    wanted
        Names of the optional outputs to write.
    """
    sizes = sizes_of(d, counts, options, shapes)
    known = _variables(d, index_dtype, dtypes)
    saved = d.saves(options)
    args = [a for a in d.op.outputs if not a.optional or a.name in wanted]
    args += [a for a in d.op.saved if a.name in saved]
    return tuple(Result(a.name, _shape(d, a, sizes), _dtype(a, known)) for a in args)


def backward_results(
    d: Derivatives, shapes: Mapping[str, Shape | None], wanted: Mapping[str, str]
) -> tuple[Result, ...]:
    """Return the gradients that backward writes; `wanted` has their dtype by the input's name."""
    found = []
    for a in d.variables:
        shape = shapes[a.name]
        if a.name in wanted and shape is not None:
            found.append(Result(a.grad, tuple(shape), wanted[a.name]))
    return tuple(found)


def _shape(d: Derivatives, arg: Arg, sizes: dict[str, int]) -> tuple[int, ...]:
    known = dict(sizes)
    for axis in arg.axes:
        if axis in d.op.derived:
            known.setdefault(axis, d.op.derived[axis](sizes))
    axes = (x for x in arg.axes if known.get(x, ABSENT if x in arg.brackets else 0) != ABSENT)
    return tuple(known[x] for x in axes)


def _variables(
    d: Derivatives, index_dtype: str, dtypes: Mapping[str, str | None]
) -> dict[str, str]:
    """Return what each name of a dtype stands for in a call; the first such array decides."""
    where, known = d.op.functions["fwd"], {"Idx": index_dtype} if index_dtype else {}
    for arg in sorted(d.op.inputs, key=lambda a: a.dtype != "T"):
        dtype = dtypes[arg.name]
        if dtype is None:
            continue
        allowed, _ = allowed_dtypes(arg.dtype, arg.narrower, known.get("T", ""))
        shared = known.setdefault(arg.dtype, dtype) if arg.dtype.isalpha() else dtype
        if dtype not in allowed or dtype != shared:
            first = shared if dtype != shared else " or ".join(allowed)
            raise wrong_type(where, arg.name, f"dtype {dtype}", first)
    return known


def _dtype(arg: Arg, known: Mapping[str, str]) -> str:
    t = known.get("T", "")
    if arg.dtype.isupper() and arg.dtype != "A":
        return known.get(arg.dtype, t)
    if arg.dtype == "Idx":
        return known["Idx"]
    return "float64" if t == "float64" else "float32"


def read_by(d: Derivatives) -> tuple[str, ...]:
    """Names of the arrays that backward reads."""
    return tuple(a.name for a in d.op.bwd if not a.written)


def told(
    d: Derivatives, half: str, counts: Sizes, options: Options, shapes: Mapping[str, Shape | None]
) -> dict[str, int]:
    """Return the numbers that a half is told beside its arrays, by name."""
    names = d.op.sizes.get(half, ())
    sizes = sizes_of(d, counts, options, shapes) if names else {}
    return {name: sizes.get(name, 0) for name in names}
