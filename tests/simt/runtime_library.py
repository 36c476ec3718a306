"""The runtime's C functions, as include/simt_abi.h and runtime/*.cpp define them."""

from __future__ import annotations

import ctypes as c
import functools

from . import toolchain


class Parameter(c.Structure):
    """simt_parameter."""

    _fields_ = (
        ("type", c.c_char_p),
        ("size", c.c_uint32),
        ("element_size", c.c_uint32),
        ("is_pointer", c.c_bool),
        ("is_const", c.c_bool),
        ("kind", c.c_char),
    )


class Kernel(c.Structure):
    """simt_kernel."""

    _fields_ = (
        ("name", c.c_char_p),
        ("thunk", c.c_void_p),
        ("n_parameters", c.c_int),
        ("parameters", c.POINTER(Parameter)),
    )


class LaunchSpec(c.Structure):
    """simt_launch_spec."""

    _fields_ = (
        ("thunk", c.c_void_p),
        ("args", c.c_void_p),
        ("grid", c.c_uint32 * 3),
        ("block", c.c_uint32 * 3),
        ("shared_bytes", c.c_uint32),
        ("check", c.c_uint32),
        ("strict_exit", c.c_uint32),
        ("strict_shuffle", c.c_uint32),
        ("stats", c.c_uint32),
        ("preempt", c.c_uint32),
        ("seed", c.c_uint64),
        ("step_limit", c.c_uint64),
        ("timeout_ms", c.c_uint32),
    )


class LaunchResult(c.Structure):
    """simt_launch_result."""

    _fields_ = (
        ("accesses", c.c_uint64),
        ("block_accesses", c.c_uint64),
        ("steps", c.c_uint64),
        ("n_faults", c.c_int32),
    )


class SiteStats(c.Structure):
    """simt_site_stats."""

    _fields_ = (
        ("pc", c.c_size_t),
        ("file", c.c_char_p),
        ("line", c.c_int32),
        ("kind", c.c_int32),
        ("bytes", c.c_uint32),
        ("shared", c.c_uint32),
        ("requests", c.c_uint64),
        ("lanes", c.c_uint64),
        ("total_bytes", c.c_uint64),
        ("units", c.c_uint64),
    )


_address, _size, _string = c.c_size_t, c.c_size_t, c.c_char_p
_SIGNATURES = {
    "simt_launch": (None, c.POINTER(LaunchSpec), _address, _address, c.POINTER(LaunchResult)),
    "simt_fault": (
        c.c_int,
        c.c_int,
        c.POINTER(_string),
        c.POINTER(_string),
        c.POINTER(_address),
        c.POINTER(_string),
        c.POINTER(c.c_int),
    ),
    "simt_stats": (c.c_int, c.POINTER(SiteStats), c.c_int),
    "simt_clear_memory": (None, _address, _address),
    "simt_add_global": (
        None,
        _address,
        _address,
        _address,
        c.c_int,
        c.c_int,
        _address,
        c.c_int,
        _string,
    ),
    "simt_set_shared": (None, _address, _size),
    "simt_add_shared": (None, _size, _size, _string),
    "simt_module_extent": (None, _address, c.POINTER(_address), c.POINTER(_address)),
    "simt_allocate": (_address, _size, c.c_int),
    "simt_release": (None, _address, _size),
    "simt_damage": (_size, _address, _size),
}


@functools.cache
def library() -> c.CDLL:
    """Build the runtime if need be and load it so that kernel modules link to it."""
    dll = c.CDLL(str(toolchain.build_runtime()), mode=c.RTLD_GLOBAL)
    for name, (result, *arguments) in _SIGNATURES.items():
        function = getattr(dll, name)
        function.restype, function.argtypes = result, arguments
    return dll
