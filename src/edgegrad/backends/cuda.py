"""Launches of kernels/*.cu on a GPU; the only module that imports CuPy.

CuPy is imported by the first call that needs it. Every kernel instantiation is a module of its
own, compiled when it is first launched and kept in CuPy's disk cache.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.resources
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from edgegrad import _host
from edgegrad.errors import BackendError
from edgegrad.interop import ArrayView

# The live folder in an editable install, the wheel's copy otherwise.
KERNELS = Path(str(importlib.resources.files("edgegrad").joinpath("kernels")))

BLOCK_THREADS = 256  # kBlockThreads in kernels/common/rows.cuh
MAX_ACCESS_BYTES = 16
WARP = 32
# Enough blocks to fill any GPU many times over; kernels loop over what is left.
MAX_GRID = 1 << 20
MAX_GRID_YZ = 65535

C_TYPES = {
    "float16": "edgegrad::half_t",
    "bfloat16": "edgegrad::bfloat16_t",
    "float32": "float",
    "float64": "double",
    "int32": "int",
    "int64": "long long",
}
ITEM_SIZES = {"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8, "int32": 4, "int64": 8}
INDEX_DTYPES = ("int32", "int64")


@dataclass(frozen=True)
class Scratch:
    """A place in a launch's arguments for the plan's scratch memory, from a byte on."""

    offset: int = 0


@dataclass(frozen=True)
class Launch:
    """One kernel launch. Pointers are ints, other scalars NumPy scalars of the exact C type."""

    source: str
    kernel: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    args: tuple[Any, ...]
    shared_mem: int = 0


@dataclass(frozen=True)
class Plan:
    """Launches in order, and the bytes of scratch they share."""

    launches: tuple[Launch, ...]
    scratch: int = 0


@functools.cache
def cupy() -> Any:
    """Import CuPy, or say what is missing and how to get it."""
    try:
        import cupy as cp
    except ImportError as error:
        raise BackendError(
            f"CuPy cannot be imported ({error}): pip install 'edgegrad[cuda12]' or "
            "'edgegrad[cuda13]', by the driver's CUDA version"
        ) from None
    try:
        n = cp.cuda.runtime.getDeviceCount()
    except Exception as error:
        raise BackendError(f"no CUDA driver answers ({error}): install the NVIDIA driver") from None
    if n == 0:
        raise BackendError("the CUDA driver reports no GPU: use host arrays on this machine")
    return cp


@functools.cache
def options() -> tuple[str, ...]:
    """Return the compiler options of every kernel."""
    # CuPy's disk cache hashes the source and the options but not the files behind -I: without
    # this digest an edited header would silently keep the old machine code.
    headers = b"".join(f.read_bytes() for f in sorted(KERNELS.glob("common/*")))
    digest = hashlib.sha256(headers).hexdigest()[:15]
    return ("-std=c++17", f"-I{KERNELS}", f"-DEG_HEADERS=0x{digest}")


@functools.cache
def load(source: str, kernel: str, device_id: int) -> Any:
    """Compile a kernel, once per process and device."""
    del device_id  # a module is loaded into the device that is current, so it is part of the key
    code = (KERNELS / source).read_text()
    try:
        module = cupy().RawModule(code=code, options=options(), name_expressions=(kernel,))
        return module.get_function(kernel)
    except cupy().cuda.compiler.CompileException as error:
        raise BackendError(
            f"{source}: {kernel} with {options()} does not compile: {error}"
        ) from None


@contextlib.contextmanager
def on(device: str, stream_id: int = 0) -> Iterator[Any]:
    """Make a device and a stream current and yield CuPy; allocations belong to the stream."""
    cp = cupy()
    with cp.cuda.Device(device_index(device)), cp.cuda.ExternalStream(stream_id):
        yield cp


def settled(cp: Any, *arrays: Any) -> list[ArrayView]:
    """View arrays that the current stream has finished, whichever stream reads them next."""
    cp.cuda.get_current_stream().synchronize()
    return [_host.view(a) for a in arrays]


def launch(spec: Launch, device: str, stream_id: int = 0) -> None:
    """Enqueue one kernel."""
    # CuPy would launch one block where the grid has none.
    if 0 in spec.grid:
        return
    cp = cupy()
    index = device_index(device)
    with cp.cuda.Device(index):
        stream = cp.cuda.ExternalStream(stream_id)
        function = load(spec.source, spec.kernel, index)
        function(spec.grid, spec.block, spec.args, shared_mem=spec.shared_mem, stream=stream)


def run(plan: Plan, device: str, stream_id: int = 0) -> None:
    """Enqueue a plan; its scratch comes from the stream's pool and returns to it in order."""
    pointer_to = 0
    with contextlib.ExitStack() as stack:
        if plan.scratch:
            cp = stack.enter_context(on(device, stream_id))
            memory = cp.empty(plan.scratch, dtype="uint8")
            pointer_to = int(memory.data.ptr)
        for spec in plan.launches:
            args = tuple(pointer_to + a.offset if isinstance(a, Scratch) else a for a in spec.args)
            launch(replace(spec, args=args), device, stream_id)


def device_index(device: str) -> int:
    """Return n of "cuda:<n>"."""
    return int(device.partition(":")[2] or 0)


def device_of(array: Any, pointer: int, pending: int | None, stream_id: int) -> int:
    """Return the device of an array with a CUDA array interface, ordering its pending work.

    `pending` is the interface's stream: None or missing asks for nothing, 0 is not allowed (it is
    ambiguous), anything else must have finished what it was given before our stream goes on.
    """
    cp = cupy()
    if pending == 0:
        raise ValueError(
            "stream 0 in its CUDA array interface, expected None, 1, 2 or a stream handle"
        )
    index = getattr(getattr(array, "device", None), "id", None)
    if index is None:
        known = pointer != 0
        runtime = cp.cuda.runtime
        index = runtime.pointerGetAttributes(pointer).device if known else runtime.getDevice()
    # 1 is the legacy default stream, which a handle of 0 means to us.
    if pending is not None and pending not in (stream_id, 1 if stream_id == 0 else stream_id):
        with cp.cuda.Device(index):
            event = cp.cuda.Event(disable_timing=True)
            event.record(cp.cuda.ExternalStream(pending))
            cp.cuda.ExternalStream(stream_id).wait_event(event)
    return int(index)


def addressable(pointer: int) -> bool:
    """Whether kernels can work on host memory at this address: pinned, and mapped for GPUs."""
    runtime = cupy().cuda.runtime
    try:
        # Memory that was never registered has no device address.
        return runtime.pointerGetAttributes(pointer).devicePointer != 0
    except runtime.CUDARuntimeError:
        return False


# ---- what plans are made of


def pointer(a: ArrayView | None) -> int:
    """Return the address of an array, 0 for None."""
    return 0 if a is None else a.ptr


def instance(name: str, *parameters: str | int) -> str:
    """Return the C++ name of a kernel instantiation; dtypes are given by name."""
    arguments = ", ".join(C_TYPES.get(str(p), str(p)) for p in parameters)
    return f"edgegrad::{name}<{arguments}>"


def vec_widths(dtype: str) -> tuple[int, ...]:
    """Return the elements per access a kernel may be compiled for."""
    most = MAX_ACCESS_BYTES // ITEM_SIZES[dtype]
    return tuple(v for v in (1, 2, 4, 8) if v <= most)


def vec_width(dtype: str, dim: int, *arrays: ArrayView) -> int:
    """Return the widest access that divides `dim` and every array's address and strides."""
    numbers = [dim]
    for a in arrays:
        numbers.append(a.ptr // ITEM_SIZES[dtype])
        numbers.extend(a.strides[:-1])
    return max(v for v in vec_widths(dtype) if all(n % v == 0 for n in numbers))


def two_widths(dtype: str) -> tuple[int, int]:
    """Return the elements per access of kernels compiled for whole accesses and for single ones."""
    return 1, MAX_ACCESS_BYTES // ITEM_SIZES[dtype]


def wide_or_one(dtype: str, dim: int, *arrays: ArrayView | None) -> int:
    """Return the wider of `two_widths` if it divides `dim` and every array's address and strides.

    Arrays of another dtype are read as many elements at a time.
    """
    one, wide = two_widths(dtype)
    numbers = [dim]
    for a in arrays:
        if a is not None:
            numbers += [a.ptr // ITEM_SIZES[a.dtype], *a.strides[:-1]]
    return wide if all(n % wide == 0 for n in numbers) else one


def lanes(dim: int, vec: int) -> int:
    """Return the threads that share a row: a power of two, at most a warp."""
    needed = max(1, -(-dim // vec))
    return min(WARP, 1 << (needed - 1).bit_length())


def blocks(n_items: int, per_block: int) -> int:
    """Return the blocks for a number of items; 0 for none."""
    return min(MAX_GRID, -(-n_items // per_block))


# ---- memory that several streams work on


def zeros(shape: tuple[int, ...], dtype: np.dtype, device: str, stream_id: int = 0) -> Any:
    """Make an array in GPU memory."""
    with on(device, stream_id) as cp:
        return cp.zeros(shape, dtype=dtype)


def pinned(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Make an array of zeros in host memory that kernels can address."""
    n = int(np.prod(shape))
    memory = cupy().cuda.alloc_pinned_memory(max(1, n * dtype.itemsize))
    a = np.frombuffer(memory, dtype, n).reshape(shape)
    a[...] = 0
    return a


class StreamOrder:
    """Orders work on shared memory by events: readers after the last writer, writers after all.

    Nothing waits on the host, and work on one stream needs no event.
    """

    def __init__(self, device: str) -> None:
        self._device = device
        self._written: dict[int, Any] = {}  # event of the last write, by its stream
        self._read: dict[int, Any] = {}  # events of reads since then, by their streams

    @contextlib.contextmanager
    def reading(self, stream_id: int) -> Iterator[None]:
        """Enqueue reads inside."""
        self._wait(self._written, stream_id)
        try:
            yield
        finally:
            self._read[stream_id] = self._event(stream_id)

    @contextlib.contextmanager
    def writing(self, stream_id: int) -> Iterator[None]:
        """Enqueue writes inside."""
        self._wait({**self._written, **self._read}, stream_id)
        try:
            yield
        finally:
            self._written, self._read = {stream_id: self._event(stream_id)}, {}

    def _wait(self, events: dict[int, Any], stream_id: int) -> None:
        with on(self._device, stream_id) as cp:
            for other, event in events.items():
                if other != stream_id:
                    cp.cuda.ExternalStream(stream_id).wait_event(event)

    def _event(self, stream_id: int) -> Any:
        with on(self._device, stream_id) as cp:
            event = cp.cuda.Event(disable_timing=True)
            event.record(cp.cuda.ExternalStream(stream_id))
            return event
