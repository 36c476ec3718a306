"""Anybody's array as an `ArrayView`: address, shape, strides in elements, dtype, device.

The work is done natively (src/host/array.cpp). NumPy arrays come through the buffer protocol,
PyTorch through DLPack's C exchange API, CuPy and others through the CUDA array interface, JAX and
the rest through DLPack, versioned where the exporter can. Nothing is copied. A tensor that
requires grad is viewed as if detached: its autograd state is neither read nor changed.
"""

from __future__ import annotations

from typing import Any

from edgegrad._host import ArrayView, first_overlap
from edgegrad._host import view as _view
from edgegrad.errors import ArgumentError, BackendError, wrong_type, wrong_value

__all__ = ["ArrayView", "first_overlap", "view"]


def view(where: str, name: str, array: Any, stream_id: int = 0) -> ArrayView:
    """View `array`, the argument `name` of the function `where`.

    Parameters
    ----------
    where, name : str
        Named in the message if the array cannot be viewed.
    array : any array
        NumPy, CuPy, PyTorch, JAX, or anything with DLPack, the CUDA array interface or the buffer
        protocol. Scalars, lists and strings are not arrays.
    stream_id : int
        CUDA stream the array will be used on; pending work of its producer is ordered before it.

    Raises
    ------
    ArgumentError
        A `TypeError` or `ValueError` that says what `array` is instead.
    """
    try:
        return _view(array, stream_id)
    except (ArgumentError, BackendError, MemoryError):
        raise
    except ValueError as error:
        raise wrong_value(where, name, *_split(error)) from None
    except Exception as error:  # exporters are anybody's code and raise anything
        raise wrong_type(where, name, *_split(error)) from None


def _split(error: Exception) -> tuple[str, str]:
    text = " ".join(str(error).split())
    has, found, expected = text.partition(", expected ")
    if found:
        return has, expected
    has = f"an array that cannot be imported ({type(error).__name__}: {text})"
    return has, "one that exports itself by DLPack"
