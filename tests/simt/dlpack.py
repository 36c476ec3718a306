"""Export of device arrays: NumPy's own capsule, with the device and dtype corrected in place."""

from __future__ import annotations

import ctypes as c
from typing import Any

import numpy as np

CUDA = 2
DEVICE = (CUDA, 0)
BFLOAT = 4


class Tensor(c.Structure):
    """DLTensor."""

    _fields_ = (
        ("data", c.c_void_p),
        ("device_type", c.c_int32),
        ("device_id", c.c_int32),
        ("ndim", c.c_int32),
        ("code", c.c_uint8),
        ("bits", c.c_uint8),
        ("lanes", c.c_uint16),
        ("shape", c.POINTER(c.c_int64)),
        ("strides", c.POINTER(c.c_int64)),
        ("byte_offset", c.c_uint64),
    )


# DLManagedTensor begins with the tensor, DLManagedTensorVersioned with four words before it.
_OFFSETS = {b"dltensor": 0, b"dltensor_versioned": 32}

_name = c.pythonapi.PyCapsule_GetName
_name.restype, _name.argtypes = c.c_char_p, [c.py_object]
_pointer = c.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = c.c_void_p, [c.py_object, c.c_char_p]


def tensor_in(capsule: Any) -> Tensor:
    """The tensor in a capsule that has not been consumed."""
    name = _name(capsule)
    return Tensor.from_address(_pointer(capsule, name) + _OFFSETS[name])


def export(
    host: np.ndarray,
    *,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None,
    copy: bool | None = None,
) -> Any:
    """A capsule of CUDA memory for a host view of it."""
    if dl_device not in (None, DEVICE):
        raise BufferError(f"cannot export to the device {dl_device}")
    if copy:
        raise BufferError("copies are not exported")
    is_bfloat = host.dtype.name == "bfloat16"
    exported = host.view(np.uint16) if is_bfloat else host
    capsule = exported.__dlpack__(max_version=max_version)
    tensor = tensor_in(capsule)
    tensor.device_type, tensor.device_id = DEVICE
    if is_bfloat:
        tensor.code = BFLOAT
    return capsule
