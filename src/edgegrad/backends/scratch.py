"""Memory that a call needs beyond its arrays, on the device and the stream of the call."""

from __future__ import annotations

import numpy as np

from edgegrad import _host
from edgegrad.interop import ArrayView


def empty(device: str, shape: tuple[int, ...], dtype: str, stream_id: int = 0) -> ArrayView:
    """Return an array to be written; on a GPU it goes back to the stream's pool in order."""
    if device == "cpu":
        return _host.view(np.empty(shape, dtype=dtype))
    from edgegrad.backends import cuda

    with cuda.on(device, stream_id) as cp:
        return _host.view(cp.empty(shape, dtype=dtype), stream_id)


def zeros(device: str, shape: tuple[int, ...], dtype: str, stream_id: int = 0) -> ArrayView:
    """Return an array of zeros, for rows that no kernel writes."""
    if device == "cpu":
        return _host.view(np.zeros(shape, dtype=dtype))
    from edgegrad.backends import cuda

    with cuda.on(device, stream_id) as cp:
        return _host.view(cp.zeros(shape, dtype=dtype), stream_id)


def accumulators(like: ArrayView, shape: tuple[int, ...], stream_id: int = 0) -> ArrayView:
    """Return sums to be written: float64 for float64, else float32."""
    return empty(like.device, shape, accumulator(like), stream_id)


def accumulator(a: ArrayView) -> str:
    """Return the dtype of sums of such an array."""
    return "float64" if a.dtype == "float64" else "float32"
