"""The part of `cupy.cuda` that edgegrad uses: one device, and streams in name only."""

from __future__ import annotations

import itertools
import sys
from types import ModuleType, SimpleNamespace, TracebackType
from typing import Any, ClassVar

from . import memory
from .errors import CompileError

_current: list[Stream] = []
_handles = itertools.count(0x51000000, 0x100)


class Stream:
    """All work is done when it is enqueued; what remains is which stream it was sent to."""

    null: ClassVar[Stream]

    def __init__(self, null: bool = False, non_blocking: bool = False, ptds: bool = False) -> None:
        self.ptr = 0 if null else next(_handles)

    def __enter__(self) -> Stream:
        _current.append(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _current.pop()

    def synchronize(self) -> None:
        """Nothing is pending."""

    def wait_event(self, event: Event) -> None:
        """Nothing is pending; `waits` remembers who was told to wait for whom."""
        waits.append((self.ptr, event.stream.ptr))


class ExternalStream(Stream):
    """A stream made by somebody else."""

    def __init__(self, ptr: int, device_id: int = -1) -> None:
        self.ptr = ptr


Stream.null = Stream(null=True)


class Event:
    """A point in a stream."""

    def __init__(
        self, block: bool = False, disable_timing: bool = False, interprocess: bool = False
    ) -> None:
        self.stream = Stream.null

    def record(self, stream: Stream | None = None) -> None:
        """Note whose work is waited for."""
        self.stream = stream or get_current_stream()


# Handles (of the stream that waits, of the stream waited for), since the list was last cleared.
waits: list[tuple[int, int]] = []


def get_current_stream() -> Stream:
    """The stream of the innermost ``with``."""
    return _current[-1] if _current else Stream.null


class Device:
    """The simulated device, number 0. Its properties are those of an A100, but for its size."""

    compute_capability = "80"
    attributes: ClassVar[dict[str, int]] = {
        "MaxSharedMemoryPerBlock": 49152,
        "MaxSharedMemoryPerBlockOptin": 166912,
        "MaxThreadsPerBlock": 1024,
        "MultiProcessorCount": 4,
        "WarpSize": 32,
    }

    def __init__(self, device: Any = 0) -> None:
        self.id = int(device.id if isinstance(device, Device) else device)
        if self.id != 0:
            raise runtime.CUDARuntimeError("cudaErrorInvalidDevice: invalid device ordinal")

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def use(self) -> None:
        """There is no other."""

    def synchronize(self) -> None:
        """Nothing is pending."""


class runtime:
    """`cupy.cuda.runtime`."""

    class CUDARuntimeError(RuntimeError):
        """An error of the CUDA runtime."""

    @staticmethod
    def getDeviceCount() -> int:
        """The number of devices."""
        return 1

    @staticmethod
    def getDevice() -> int:
        """The current device."""
        return 0

    @staticmethod
    def pointerGetAttributes(pointer: int) -> SimpleNamespace:
        """Where an address is."""
        if memory.find(pointer) is None:
            raise runtime.CUDARuntimeError("cudaErrorInvalidValue: no device memory")
        return SimpleNamespace(device=0, devicePointer=pointer)

    @staticmethod
    def runtimeGetVersion() -> int:
        """The version of CUDA whose behaviour is simulated."""
        return 12090


compiler = SimpleNamespace(CompileException=CompileError)


def is_available() -> bool:
    """There is always a simulated device."""
    return True


def this_module() -> ModuleType:
    """The module that stands in for cupy."""
    return sys.modules[f"{__package__}.cupy_standin"]
