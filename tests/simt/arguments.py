"""From the arguments of a launch to what the kernel is given and which memory it may touch."""

from __future__ import annotations

import ctypes as c
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from . import memory
from .arrays import ndarray
from .errors import Fault, SimtError
from .module import Parameter

_STRUCTS = {"half_t": "float16", "bfloat16_t": "bfloat16"}
_KINDS = {"f": "f", "i": "iu", "u": "iub", "?": "bu"}


@dataclass(frozen=True)
class Reach:
    """Memory that an argument lets the kernel touch."""

    allocation: memory.Allocation
    lo: int
    hi: int
    shift: int  # log2 of the bytes that are written by one thread at a time
    read_only: bool
    name: str


@dataclass(frozen=True)
class Bound:
    """Arguments in the form a kernel is called with."""

    pointers: c.Array[c.c_void_p]
    reaches: list[Reach]
    storage: list[Any]  # what `pointers` points to


def _fits(p: Parameter, dtype: np.dtype[Any]) -> bool:
    """Whether memory that was made as `dtype` may be read through the pointer."""
    if p.kind == "v":
        return True
    if p.kind == "x":
        struct = p.type.removeprefix("const ").rstrip("* ").split("::")[-1]
        if struct in _STRUCTS:
            return dtype.name == _STRUCTS[struct]
        return p.element_size % dtype.itemsize == 0
    same_kind = dtype.kind in _KINDS[p.kind] and dtype.name != "bfloat16"
    return same_kind and dtype.itemsize == p.element_size


def _bind_pointer(where: str, p: Parameter, value: Any) -> tuple[int, Reach | None]:
    if value is None:
        return 0, None
    if isinstance(value, ndarray):
        address, allocation = value.data.ptr, value.allocation
        lo, hi = np.lib.array_utils.byte_bounds(value._host) if value.size else (address, address)
        dtype = value.dtype
    elif isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        address = int(value)
        if address == 0:
            return 0, None
        allocation = memory.find(address)
        if allocation is None:
            message = f"{where} is {address:#x}, which is not in a live device array"
            raise SimtError("launch", [Fault("pointer", message)])
        lo, hi, dtype = allocation.address, allocation.end, allocation.dtype
    else:
        raise TypeError(
            f"{where} is a {type(value).__name__}, expected an address or a device array"
        )
    if not allocation.raw and not _fits(p, dtype):
        raise TypeError(f"{where} is memory of dtype {dtype}")
    shift = memory.granule_shift(p.element_size) if allocation.raw else allocation.shift
    return address, Reach(allocation, lo, hi, shift, p.is_const, p.name)


def _bind_scalar(where: str, p: Parameter, value: Any) -> Any:
    # As CuPy converts them; that is why plain numbers rarely fit.
    plain = {bool: np.bool_, int: np.int64, float: np.float64}
    scalar = plain[type(value)](value) if type(value) in plain else value
    if not isinstance(scalar, np.generic):
        raise TypeError(f"{where} is a {type(value).__name__}, expected a NumPy scalar")
    fits = scalar.dtype.kind in _KINDS.get(p.kind, "V")
    if not fits or scalar.dtype.itemsize != p.size:
        raise TypeError(f"{where} is a {type(value).__name__} of dtype {scalar.dtype}")
    return c.create_string_buffer(scalar.tobytes(), p.size)


def bind(kernel: str, parameters: Sequence[Parameter], args: Sequence[Any]) -> Bound:
    """Check the arguments against the kernel's parameters, which CuPy would not do."""
    if len(args) != len(parameters):
        raise TypeError(f"{kernel}: {len(args)} arguments given, expected {len(parameters)}")
    pointers = (c.c_void_p * max(1, len(args)))()
    bound = Bound(pointers, [], [])
    for i, (p, value) in enumerate(zip(parameters, args, strict=True)):
        where = f"{kernel}: `{p.name}` ({p.type}, argument {i})"
        if p.is_pointer:
            address, reach = _bind_pointer(where, p, value)
            stored: Any = c.c_void_p(address)
            if reach:
                bound.reaches.append(reach)
        else:
            stored = _bind_scalar(where, p, value)
        bound.storage.append(stored)
        pointers[i] = c.addressof(stored)
    return bound


def merged(reaches: Sequence[Reach]) -> list[Reach]:
    """Disjoint ranges; where arguments share memory, one of them may make it writable."""
    result: list[Reach] = []
    for reach in sorted(reaches, key=lambda r: r.lo):
        last = result[-1] if result else None
        if last is None or last.allocation is not reach.allocation or reach.lo >= last.hi:
            result.append(reach)
            continue
        names = last.name if reach.name in last.name.split("/") else f"{last.name}/{reach.name}"
        result[-1] = replace(
            last,
            hi=max(last.hi, reach.hi),
            shift=min(last.shift, reach.shift),
            read_only=last.read_only and reach.read_only,
            name=names,
        )
    return result
