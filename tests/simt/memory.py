"""Device memory: every live allocation, and what of it has been written."""

from __future__ import annotations

import bisect
import weakref
from typing import Any

import numpy as np

from .runtime_library import library

# Beyond this, memory is left as the zeros it is mapped as, so that it costs nothing until touched.
_MAX_FILLED = 64 << 20

_starts: list[int] = []  # sorted
_live: dict[int, weakref.ref[Allocation]] = {}


def granule_shift(size: int) -> int:
    """log2 of the unit in which memory of elements of `size` bytes is watched: 1 to 8 bytes."""
    return min(3, max(0, (size & -size).bit_length() - 1))


class Allocation:
    """A range of device memory. Arrays keep it alive; when the last one goes, it is unmapped.

    ``undefined`` has one byte per granule (the element of the array it was made for): 1 where
    nothing has been written. A map of zeros takes no memory until it is touched.
    """

    def __init__(self, nbytes: int, dtype: np.dtype[Any], *, defined: bool) -> None:
        fill = not defined and nbytes <= _MAX_FILLED
        self.address: int = library().simt_allocate(nbytes, fill)
        if not self.address:
            raise MemoryError(f"{nbytes} bytes of simulated device memory")
        self.nbytes, self.dtype = nbytes, dtype
        self.shift = granule_shift(dtype.itemsize)
        # Bytes say nothing about what they hold: scratch memory is used as anything.
        self.raw = dtype.name in ("int8", "uint8")
        n_granules = (nbytes >> self.shift) + 2
        make = np.zeros if defined else np.ones
        self.undefined: np.ndarray = make(n_granules, np.uint8)
        bisect.insort(_starts, self.address)
        _live[self.address] = weakref.ref(self)
        weakref.finalize(self, _release, self.address, nbytes).atexit = False

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """Bytes that NumPy can view; the view keeps this object alive."""
        data = (self.address, False)
        return {"version": 3, "shape": (self.nbytes,), "typestr": "|u1", "data": data}

    @property
    def end(self) -> int:
        """The address after the last byte."""
        return self.address + self.nbytes

    def host_view(self) -> np.ndarray:
        """The memory as a host array of its dtype."""
        return np.asarray(self).view(self.dtype)

    def damage(self) -> int:
        """The number of bytes next to the memory that were overwritten."""
        return library().simt_damage(self.address, self.nbytes)

    def undefined_granules(self, array: np.ndarray) -> np.ndarray | None:
        """The map of a host view of this memory, one byte per element.

        None if its elements are not the granules, in which case only whole ranges are known.
        """
        if array.itemsize != 1 << self.shift:
            return None
        first = (array.ctypes.data - self.address) >> self.shift
        strides = tuple(stride >> self.shift for stride in array.strides)
        return np.lib.stride_tricks.as_strided(self.undefined[first:], array.shape, strides)

    def define(self, array: np.ndarray, key: Any = ...) -> None:
        """Note that ``array[key]``, a host view of this memory, has been written."""
        granules = self.undefined_granules(array)
        if granules is not None:
            granules[key] = 0
        elif array.size:
            self.define_range(*np.lib.array_utils.byte_bounds(array))

    def define_range(self, lo: int, hi: int) -> None:
        """Note that the addresses from `lo` to before `hi` have been written."""
        begin, end = (lo - self.address) >> self.shift, (hi - 1 - self.address) >> self.shift
        self.undefined[begin : end + 1] = 0


def _release(address: int, nbytes: int) -> None:
    del _live[address]
    _starts.remove(address)
    library().simt_release(address, nbytes)


def find(address: int) -> Allocation | None:
    """The live allocation that `address` lies in, or is the end of."""
    at = bisect.bisect_right(_starts, address)
    if not at:
        return None
    allocation = _live[_starts[at - 1]]()
    return allocation if allocation and address <= allocation.end else None


def owner(array: np.ndarray) -> Allocation | None:
    """The allocation that a host array is a view of, if any."""
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    return base if isinstance(base, Allocation) else None
