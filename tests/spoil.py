"""Ways to spoil one array of a valid call, and what must then be said about it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

import simt
from calls import Made
from edgegrad.operator import BATCH, HEADS, Arg


@dataclass(frozen=True)
class Spoiled:
    """A value that must be refused, the built-in class of the error, and what it `has`."""

    value: Any
    error: type[Exception]
    has: str
    axis: str = ""  # the axis whose size is another now


# Axes whose size nothing but the array itself, or values, say.
_FREE = {("pool_n2s", "n_nodes"), ("spmm", HEADS)}

Spoiler = Callable[[Made, Arg], Iterator[Spoiled]]


class Exported:
    """A device array whose CUDA array interface says something else."""

    def __init__(self, array: Any, **changed: Any) -> None:
        self._array, self.device = array, array.device
        self.__cuda_array_interface__ = {**array.__cuda_array_interface__, **changed}


def _host(made: Made, arg: Arg) -> np.ndarray:
    return made.device.numpy(made.arrays[arg.name])


def _retyped(dtype: Any) -> Spoiler:
    def spoil(made: Made, arg: Arg) -> Iterator[Spoiled]:
        # Without a graph, the first ids of a call say how wide ids are.
        if arg.dtype == "Idx" and not made.case.op.graphs and dtype is np.int64:
            return
        if np.dtype(dtype).name in arg.dtype.split("|"):
            return
        value = _host(made, arg)
        with np.errstate(invalid="ignore"):
            value = np.nan_to_num(value).astype(dtype)
        yield Spoiled(made.device.array(value), TypeError, f"dtype {np.dtype(dtype)}")

    return spoil


def other_float(made: Made, arg: Arg) -> Iterator[Spoiled]:
    """A floating type that the other arrays do not have."""
    a = _host(made, arg)
    for dtype in {np.dtype(np.float16), np.dtype(np.float64)} - {a.dtype}:
        yield Spoiled(made.device.array(a.astype(dtype)), TypeError, "dtype ")


def drop_axis(made: Made, arg: Arg) -> Iterator[Spoiled]:
    a = _host(made, arg)
    axis = BATCH if made.case.axes(arg)[0] == BATCH else ""
    yield Spoiled(made.device.array(a[0]), ValueError, "shape ", axis)


def add_axis(made: Made, arg: Arg) -> Iterator[Spoiled]:
    a = _host(made, arg)
    axis = BATCH if BATCH in arg.axes and BATCH in made.case.without else ""
    yield Spoiled(made.device.array(a[None]), ValueError, "shape ", axis)


def size_off(made: Made, arg: Arg) -> Iterator[Spoiled]:
    a = _host(made, arg)
    for i, axis in enumerate(made.case.axes(arg)):
        if (made.case.op.name, axis) in _FREE:
            continue
        for change in (-1, 1):
            shape = (*a.shape[:i], a.shape[i] + change, *a.shape[i + 1 :])
            value = made.device.poisoned(shape, a.dtype)
            yield Spoiled(value, ValueError, "shape ", axis)


def columns_apart(made: Made, arg: Arg) -> Iterator[Spoiled]:
    a = _host(made, arg)
    wide = made.device.array(np.repeat(a, 2, axis=-1))
    yield Spoiled(wide[..., ::2], ValueError, "strides ")


def fortran_order(made: Made, arg: Arg) -> Iterator[Spoiled]:
    a = _host(made, arg)
    if a.ndim > 1:
        swapped = made.device.array(np.swapaxes(a, -1, -2).copy())
        yield Spoiled(swapped.swapaxes(-1, -2), ValueError, "strides ")


def backwards(made: Made, arg: Arg) -> Iterator[Spoiled]:
    yield Spoiled(made.arrays[arg.name][..., ::-1], ValueError, "strides ")


def other_device(made: Made, arg: Arg) -> Iterator[Spoiled]:
    a = _host(made, arg)
    on_host = made.device.location == "cpu"
    yield Spoiled(simt.cupy_standin.asarray(a) if on_host else a, ValueError, "device ")


def read_only(made: Made, arg: Arg) -> Iterator[Spoiled]:
    if not arg.written:
        return
    value = made.device.array(_host(made, arg))
    if made.device.location == "cpu":
        value.setflags(write=False)
    else:
        value = Exported(value, data=(value.data.ptr, True))
    yield Spoiled(value, ValueError, "read-only memory")


def overlapping_rows(made: Made, arg: Arg) -> Iterator[Spoiled]:
    if not arg.written:
        return
    a = _host(made, arg)
    steps = (0, a.shape[-1] - 1) if a.ndim > 1 else (0,)
    for step in steps:
        by_row = (step * a.itemsize, a.itemsize) if a.ndim > 1 else (step,)
        strides = (*a.strides[:-2], *by_row)
        if made.device.location == "cpu":
            value = as_strided(a, a.shape, strides)
        else:
            value = Exported(made.device.array(a), strides=strides)
        # One axis is a row, whose own elements may not even be apart.
        has = "overlapping rows, strides " if a.ndim > 1 else "strides "
        yield Spoiled(value, ValueError, has)


def shared_memory(made: Made, arg: Arg) -> Iterator[Spoiled]:
    """An output that begins where another array of the call lies."""
    if not arg.written:
        return
    mine = _host(made, arg)
    for other in made.case.args:
        a = made.arrays[other.name]
        if other.name == arg.name or a is None:
            continue
        values = made.device.numpy(a)
        if values.dtype != mine.dtype:
            continue  # the dtype would be refused first
        tail = np.zeros(mine.size, values.dtype)
        whole = made.device.array(np.append(values.ravel(), tail))
        made.arrays[other.name] = whole[: values.size].reshape(values.shape)
        begin = values.size - 1  # the last element is shared
        value = whole[begin : begin + mine.size].reshape(mine.shape)
        yield Spoiled(value, ValueError, "memory shared with ", other.name)
        made.arrays[other.name] = a


def nothing(made: Made, arg: Arg) -> Iterator[Spoiled]:
    if not arg.optional:
        yield Spoiled(None, TypeError, "type NoneType")


def no_array(made: Made, arg: Arg) -> Iterator[Spoiled]:
    values = ([[1.0, 2.0]], (1.0,), 1.5, 3, True, "text", {}, object(), len)
    for value in values:
        yield Spoiled(value, TypeError, f"type {type(value).__name__}")
    yield Spoiled(np.ndarray, TypeError, "an array that cannot be imported")
    if made.case.op.graphs or made.device.location == "cpu":  # else it would say where to run
        yield Spoiled(b"bytes", TypeError, "dtype uint8")


def zero_dim(made: Made, arg: Arg) -> Iterator[Spoiled]:
    a = _host(made, arg)
    yield Spoiled(made.device.array(np.array(1.0, a.dtype)), ValueError, "shape ()")
    yield Spoiled(a.dtype.type(1), ValueError, "")


SPOILERS: dict[str, Spoiler] = {
    "int64": _retyped(np.int64),
    "complex64": _retyped(np.complex64),
    "bool": _retyped(np.bool_),
    "other_float": other_float,
    "drop_axis": drop_axis,
    "add_axis": add_axis,
    "size_off": size_off,
    "columns_apart": columns_apart,
    "fortran_order": fortran_order,
    "backwards": backwards,
    "other_device": other_device,
    "read_only": read_only,
    "overlapping_rows": overlapping_rows,
    "shared_memory": shared_memory,
    "nothing": nothing,
    "no_array": no_array,
    "zero_dim": zero_dim,
}
