"""Device arrays for code that was written for cupy.ndarray.

The memory is the host's, but an array does not let that be seen: like CuPy's it is no np.ndarray,
has no buffer, refuses implicit conversion to NumPy, and its results are device arrays again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np

from . import dlpack, memory
from .errors import Fault, SimtError

LEGACY_STREAM = 1  # how the array interfaces write the default stream


class ndarray(np.lib.mixins.NDArrayOperatorsMixin):
    """A view of an allocation of simulated device memory."""

    __slots__ = ("__weakref__", "_host")

    def __init__(self, host: np.ndarray) -> None:
        self._host = host

    # --- memory ---

    @property
    def allocation(self) -> memory.Allocation:
        """The memory this array is a view of."""
        allocation = memory.owner(self._host)
        assert allocation is not None
        return allocation

    @property
    def data(self) -> SimpleNamespace:
        """What `a.data.ptr` is asked of. Never null, also for an array of size zero."""
        return SimpleNamespace(ptr=self._host.ctypes.data)

    @property
    def device(self) -> SimpleNamespace:
        """The only device there is."""
        return SimpleNamespace(id=0)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Version 3, for the legacy default stream."""
        host = self._host
        return {
            "version": 3,
            "shape": host.shape,
            "typestr": host.dtype.str,
            "descr": host.dtype.descr,
            "strides": None if host.flags.c_contiguous else host.strides,
            "data": (host.ctypes.data, False),
            "stream": LEGACY_STREAM,
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        return dlpack.DEVICE

    def __dlpack__(self, *, stream: int | None = None, **options: Any) -> Any:
        if stream == 0:
            raise ValueError("stream 0 is ambiguous in DLPack; 1 is the legacy default stream")
        return dlpack.export(self._host, **options)

    def unwritten(self) -> int:
        """The number of elements that nothing has written yet."""
        granules = self.allocation.undefined_granules(self._host) if self.size else None
        return 0 if granules is None else int(np.count_nonzero(granules))

    def require_written(self) -> None:
        """Raise unless every element has been written."""
        if n := self.unwritten():
            message = f"{n} of {self.size} elements of an array were never written"
            raise SimtError("read of device memory", [Fault("uninit", message)])

    def get(self) -> np.ndarray:
        """Copy to the host."""
        self.require_written()
        return self._host.copy()

    def set(self, values: np.ndarray) -> None:
        """Copy from a host array of the same shape and dtype."""
        if values.dtype != self.dtype or values.shape != self.shape:
            raise ValueError(f"{values.dtype}{values.shape} set to {self.dtype}{self.shape}")
        self._host[...] = values
        self.allocation.define(self._host)

    def fill(self, value: Any) -> None:
        """Write one value to all elements."""
        self[...] = value

    # --- host access that CuPy has, too ---

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        raise TypeError("implicit conversion to a NumPy array; use .get()")

    def __reduce__(self) -> tuple[Callable[..., ndarray], tuple[np.ndarray]]:
        return asarray, (self.get(),)

    def __bool__(self) -> bool:
        return bool(self.get())

    def __int__(self) -> int:
        return int(self.get())

    def __float__(self) -> float:
        return float(self.get())

    def __index__(self) -> int:
        return self.get().__index__()

    def __len__(self) -> int:
        return len(self._host)

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        return f"device {self._host!r}"

    # --- everything else is NumPy's, with device arrays on both sides ---

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # above all NumPy's protocols
            raise AttributeError(name)
        value = getattr(self._host, name)
        if callable(value):
            return lambda *args, **kwargs: apply(value, args, kwargs, reads=(self,))
        return to_device(value)

    def __getitem__(self, key: Any) -> Any:
        return apply(self._host.__getitem__, (key,), {}, reads=(self,))

    def __setitem__(self, key: Any, value: Any) -> None:
        for array in _arrays((key, value)):
            array.require_written()
        key = to_host(key)
        self._host[key] = to_host(value)
        self.allocation.define(self._host, key)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        out = tuple(a for a in kwargs.get("out", ()) if a is not None)
        written = inputs[:1] if method == "at" else out
        result = apply(getattr(ufunc, method), inputs, kwargs)
        for array in written:
            array.allocation.define(array._host)
        return out[0] if len(out) == 1 else result

    def __array_function__(self, function: Any, _: Any, args: Any, kwargs: Any) -> Any:
        return apply(function, args, kwargs)


def _arrays(value: Any) -> Iterator[ndarray]:
    if isinstance(value, ndarray):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _arrays(item)


def to_host(value: Any) -> Any:
    """Replace device arrays by host views of their memory; host arrays are an error, as in CuPy."""
    if isinstance(value, ndarray):
        return value._host
    if isinstance(value, np.ndarray) and value.ndim:
        raise TypeError("a NumPy array where a device array is needed; use asarray()")
    if type(value) in (tuple, list):
        return type(value)(map(to_host, value))
    if isinstance(value, dict):
        return {key: to_host(item) for key, item in value.items()}
    return value


def to_device(value: Any) -> Any:
    """Replace NumPy arrays and scalars by device arrays; memory of a device array is not copied."""
    if isinstance(value, np.ndarray):
        return ndarray(value) if memory.owner(value) else asarray(value)
    if isinstance(value, np.generic):
        return asarray(value)
    if isinstance(value, tuple) and any(isinstance(item, np.ndarray) for item in value):
        return tuple(map(to_device, value))
    return value


def apply(function: Any, args: Any, kwargs: Any, reads: tuple[ndarray, ...] = ()) -> Any:
    """Call a NumPy function on device arrays.

    A result that is no view of device memory was computed from what the arguments hold, so that
    must have been written. `reads` are arguments that the function already has.
    """
    with np.errstate(all="ignore"):  # a GPU does not warn
        result = function(*to_host(args), **to_host(kwargs))
    is_view = isinstance(result, np.ndarray) and memory.owner(result) is not None
    if not is_view:
        out = kwargs.get("out", ())
        written = [id(a) for a in (out if isinstance(out, tuple) else (out,))]
        for array in (*_arrays(args), *reads):
            if id(array) not in written:
                array.require_written()
    return to_device(result)


# --- creation -----------------------------------------------------------------------------------


def _new(shape: Any, dtype: Any, *, defined: bool) -> ndarray:
    dtype = np.dtype(dtype)
    shape = (int(shape),) if np.ndim(shape) == 0 else tuple(map(int, shape))
    if min(shape, default=0) < 0:
        raise ValueError(f"negative dimension in {shape}")
    nbytes = dtype.itemsize
    for extent in shape:
        nbytes *= extent
    allocation = memory.Allocation(nbytes, dtype, defined=defined)
    return ndarray(allocation.host_view().reshape(shape))


def empty(shape: Any, dtype: Any = float) -> ndarray:
    """An array that counts as unwritten."""
    return _new(shape, dtype, defined=False)


def zeros(shape: Any, dtype: Any = float) -> ndarray:
    """An array of zeros, which take no memory until they are touched."""
    return _new(shape, dtype, defined=True)


def full(shape: Any, fill_value: Any, dtype: Any = None) -> ndarray:
    """An array of one value."""
    array = _new(shape, np.asarray(fill_value).dtype if dtype is None else dtype, defined=True)
    array._host[...] = to_host(fill_value)
    return array


def ones(shape: Any, dtype: Any = float) -> ndarray:
    """An array of ones."""
    return full(shape, 1, dtype)


def empty_like(a: ndarray, dtype: Any = None) -> ndarray:
    """An unwritten array of the same shape."""
    return empty(a.shape, a.dtype if dtype is None else dtype)


def zeros_like(a: ndarray, dtype: Any = None) -> ndarray:
    """An array of zeros of the same shape."""
    return zeros(a.shape, a.dtype if dtype is None else dtype)


def ones_like(a: ndarray, dtype: Any = None) -> ndarray:
    """An array of ones of the same shape."""
    return full_like(a, 1, dtype)


def full_like(a: ndarray, fill_value: Any, dtype: Any = None) -> ndarray:
    """An array of one value, of the same shape."""
    return full(a.shape, fill_value, a.dtype if dtype is None else dtype)


def asarray(obj: Any, dtype: Any = None) -> ndarray:
    """`obj` itself, a view of the device memory it describes, or a copy of host values."""
    if isinstance(obj, ndarray):
        return obj if dtype is None or obj.dtype == dtype else obj.astype(dtype)
    if (interface := getattr(obj, "__cuda_array_interface__", None)) is not None:
        return asarray(_view(interface), dtype)
    host = np.asarray(obj, dtype=dtype)
    array = _new(host.shape, host.dtype, defined=True)
    array._host[...] = host
    return array


def array(obj: Any, dtype: Any = None) -> ndarray:
    """A new array."""
    return asarray(obj.get() if isinstance(obj, ndarray) else obj, dtype)


def ascontiguousarray(a: Any, dtype: Any = None) -> ndarray:
    """A C-contiguous array on the device."""
    a = asarray(a, dtype)
    return a if a._host.flags.c_contiguous else array(a)


def copyto(dst: ndarray, src: Any) -> None:
    """Copy values between device arrays, with broadcasting."""
    dst[...] = src


def asnumpy(a: Any) -> np.ndarray:
    """Copy to the host."""
    return a.get() if isinstance(a, ndarray) else np.asarray(a)


def _view(interface: dict[str, Any]) -> ndarray:
    address, shape, strides = interface["data"][0], interface["shape"], interface.get("strides")
    allocation = memory.find(address)
    if allocation is None:
        raise ValueError(f"{address:#x} is not in the memory of a live simulated device array")
    # Past the end NumPy sees to the bounds itself.
    raw = np.asarray(allocation)[address - allocation.address :]
    return ndarray(np.ndarray(shape, interface["typestr"], raw, strides=strides))
