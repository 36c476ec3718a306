"""Where a test runs: the host, the CPU run of the CUDA path, or a GPU. One face for all three."""

from __future__ import annotations

from typing import Any

import numpy as np

from edgegrad.backends import cuda
from edgegrad.errors import BackendError

POISON = -12345


def is_empty(a: np.ndarray) -> np.ndarray:
    """Which elements are still what `poisoned` filled them with."""
    return a == POISON if np.issubdtype(a.dtype, np.integer) else np.isnan(a.astype(np.float64))


class Host:
    """NumPy arrays, the native host kernels."""

    name = "host"
    location = "cpu"

    def array(self, a: Any) -> Any:
        """Put an array on the device, C order."""
        return np.array(a, order="C")

    def numpy(self, a: Any) -> np.ndarray:
        """Copy an array of the device to NumPy."""
        return np.array(a)

    def poisoned(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """An array of NaN, or of POISON for integers: what is never written shows."""
        is_integer = np.issubdtype(dtype, np.integer)
        return self.array(np.full(shape, POISON if is_integer else np.nan, dtype=dtype))


class Cuda(Host):
    """CuPy arrays, kernels/*.cu."""

    name = "cuda"
    location = "cuda:0"

    def array(self, a: Any) -> Any:
        return cuda.cupy().asarray(np.array(a, order="C"))

    def numpy(self, a: Any) -> np.ndarray:
        return cuda.cupy().asnumpy(a)


class Simt(Cuda):
    """The same path on a CPU, through tests/simt in the place of CuPy; needs its install()."""

    name = "simt"


def missing_gpu() -> str:
    """Why there is no GPU to test on; empty if there is one."""
    try:
        cuda.cupy()
    except BackendError as error:
        return str(error)
    return ""
