"""How far a result may be from the float64 oracle on the same rounded inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

bfloat16 = np.dtype(ml_dtypes.bfloat16)
FLOATS = (np.dtype(np.float16), bfloat16, np.dtype(np.float32), np.dtype(np.float64))
_UNIT = {np.dtype(np.float16): 2.0**-11, bfloat16: 2.0**-8, np.dtype(np.float32): 2.0**-24}
# float16 results below its normal range are spaced evenly; GPUs flush tiny float32 sums to zero.
_TINY = {np.dtype(np.float16): 2.0**-24}


@dataclass(frozen=True)
class Bounded:
    """An oracle's result, the number of terms summed into each element, and their sizes summed."""

    value: np.ndarray
    terms: Any
    magnitude: np.ndarray

    def bound(self, dtype: Any) -> np.ndarray:
        """Largest error of a sum in the accumulator of `dtype` that is rounded once to it.

        Adding n terms errs by at most n eps times their sizes; each term is itself a product of up
        to four factors, which adds as many roundings again.
        """
        dtype = np.dtype(dtype)
        half = dtype.itemsize == 2
        eps = 2.0**-53 if dtype == np.float64 else 2.0**-24
        bound = 2 * eps * (np.asarray(self.terms) + 4) * self.magnitude
        unit = _UNIT[dtype] * (1 if half else 0) if dtype in _UNIT else 0.0
        return bound + 1.001 * unit * np.abs(self.value) + _TINY.get(dtype, 2.0**-126)

    def worst(self, got: np.ndarray) -> float:
        """Largest error over its bound; infinite where a NaN or an infinity is not expected."""
        if got.shape != self.value.shape:
            raise AssertionError(f"shape {got.shape}, expected {self.value.shape}")
        if got.size == 0:
            return 0.0
        with np.errstate(invalid="ignore", over="ignore"):
            wide = got.astype(np.float64)
            ratio = np.abs(wide - self.value) / self.bound(got.dtype)
        same = (wide == self.value) | (np.isnan(self.value) & np.isnan(wide))
        ratio = np.where(same, 0.0, ratio)  # equal infinities are right, and NaN by subtraction
        return float(np.where(np.isnan(ratio), np.inf, ratio).max())
