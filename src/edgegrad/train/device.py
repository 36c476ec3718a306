"""Where a model lives: NumPy on the host or CuPy on a GPU, behind the few calls training needs."""

from __future__ import annotations

from typing import Any

import numpy as np

NAMES = ("cpu", "cuda")
DTYPES = ("float32", "float64")


class Device:
    """The array module, the dtype of parameters, and the way of a graph to the device."""

    def __init__(self, name: str, dtype: str = "float32") -> None:
        self.name, self.dtype = name, np.dtype(dtype)
        self.xp: Any = np
        if name == "cuda":
            from edgegrad.backends import cuda

            self.xp = cuda.cupy()

    def array(self, values: Any) -> Any:
        """Copy host values to the device, as the dtype of the parameters."""
        return self.xp.asarray(np.asarray(values, dtype=self.dtype))

    def empty(self, *shape: int) -> Any:
        """Make a buffer for an operator to write into."""
        return self.xp.empty(shape, dtype=self.dtype)

    def graph(self, graph: Any) -> Any:
        """Move a graph that was made on the host."""
        return graph if self.xp is np else graph.to(self.name)

    def to_host(self, array: Any) -> np.ndarray:
        """Read an array back."""
        return array if self.xp is np else self.xp.asnumpy(array)
