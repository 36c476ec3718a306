"""`cupy.RawModule` and `cupy.RawKernel`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import cuda, launch, module
from .settings import settings
from .toolchain import MAX_DYNAMIC_SHARED

_DEFAULT_DYNAMIC_SHARED = 48 << 10  # more must be asked for


class RawModule:
    """CUDA source that is compiled when a kernel of it is first asked for."""

    def __init__(
        self,
        *,
        code: str,
        options: Sequence[str] = (),
        backend: str = "nvrtc",
        name_expressions: Sequence[str] | None = None,
    ) -> None:
        if backend != "nvrtc":
            raise ValueError(f"backend {backend!r}, expected 'nvrtc'")
        self.code, self.options = code, tuple(options)
        self.name_expressions = tuple(name_expressions or ())

    def compile(self) -> None:
        """Compile now, for the checks that are in force."""
        self.load()

    def load(self) -> module.Module:
        """The build for the checks that are in force."""
        return module.load(self.code, self.options, self.name_expressions, settings().check)

    def get_function(self, name: str) -> Kernel:
        """The kernel of a name expression, or an ``extern "C"`` kernel by its name."""
        entries = self.load().entries
        if name not in entries:
            raise RuntimeError(f"CUDA_ERROR_NOT_FOUND: {name!r}, the module has {list(entries)}")
        return Kernel(self, name)


class Kernel:
    """A kernel that can be called like CuPy's."""

    def __init__(self, source: RawModule, name: str) -> None:
        self.source, self.name = source, name
        self._max_dynamic_shared = _DEFAULT_DYNAMIC_SHARED

    @property
    def max_dynamic_shared_size_bytes(self) -> int:
        """The limit of dynamic shared memory; may be raised to what an H100 has."""
        return self._max_dynamic_shared

    @max_dynamic_shared_size_bytes.setter
    def max_dynamic_shared_size_bytes(self, limit: int) -> None:
        if not 0 <= limit <= MAX_DYNAMIC_SHARED:
            raise RuntimeError(f"CUDA_ERROR_INVALID_VALUE: {limit} bytes of dynamic shared memory")
        self._max_dynamic_shared = limit

    def __call__(
        self,
        grid: Any,
        block: Any,
        args: Sequence[Any],
        shared_mem: int = 0,
        stream: cuda.Stream | None = None,
    ) -> None:
        if shared_mem > self._max_dynamic_shared:
            limit = f"the limit is {self._max_dynamic_shared}"
            raise RuntimeError(f"CUDA_ERROR_INVALID_VALUE: {shared_mem} bytes shared, {limit}")
        launch.run(
            self.name,
            self.source.load(),
            args,
            launch.dimensions("grid", grid),
            launch.dimensions("block", block),
            shared_mem,
            (stream or cuda.get_current_stream()).ptr,
        )


def RawKernel(code: str, name: str, options: Sequence[str] = ()) -> Kernel:
    """The kernel `name` of a source, compiled on its own."""
    return RawModule(code=code, options=options, name_expressions=[name]).get_function(name)
