"""`interop.view` of anything that speaks DLPack or the CUDA array interface."""

from __future__ import annotations

import ctypes
import gc
import weakref
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import devices
import edgegrad
import graphs
import simt
from edgegrad._host import overlap
from edgegrad.interop import ArrayView, view

cp = simt.cupy_standin


def seen(a: Any, stream_id: int = 0) -> ArrayView:
    return view("f", "a", a, stream_id)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The CPU run's device arrays, and who waited for whom."""
    simt.install(monkeypatch)
    cp.cuda.waits.clear()
    return cp.cuda


# ---- DLPack


class Exporter:
    """Exports a NumPy array by DLPack alone, as old or as new as asked."""

    def __init__(self, array: np.ndarray, old: bool = False) -> None:
        self.array, self.old, self.asked = array, old, []

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()

    def __dlpack__(self, **options: Any) -> Any:
        self.asked.append(options)
        if self.old and options:
            raise TypeError(f"__dlpack__() got an unexpected keyword argument {min(options)!r}")
        return self.array.__dlpack__(**options)


@pytest.mark.parametrize("old", [False, True])
def test_dlpack(old: bool) -> None:
    a = np.arange(24, dtype=np.float32).reshape(4, 6)[:, 1:4]
    exporter = Exporter(a, old)
    v = seen(exporter)
    assert (v.ptr, v.shape, v.strides, v.dtype) == (a.ctypes.data, (4, 3), (6, 1), "float32")
    assert not v.readonly
    assert exporter.asked[0]["max_version"] >= (1, 0)
    assert exporter.asked[1:] == ([{}] if old else [])


def test_dlpack_read_only() -> None:
    a = np.zeros(3)
    a.setflags(write=False)
    assert seen(Exporter(a)).readonly


def test_dlpack_holds_the_array_until_the_view_goes() -> None:
    a = np.zeros(3)
    alive = weakref.ref(a)
    v = seen(Exporter(a))
    del a
    gc.collect()
    assert alive() is not None
    del v
    gc.collect()
    assert alive() is None


class Capsule:
    """Exports the same capsule every time, as no exporter should."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self.capsule


def _refused(a: Any, text: str) -> None:
    with pytest.raises(TypeError, match=f"f: `a` has .*{text}.*, expected ") as caught:
        seen(a)
    assert isinstance(caught.value, edgegrad.ArgumentError)
    assert "\n" not in str(caught.value)


def test_a_capsule_is_used_once() -> None:
    once = Capsule(np.zeros(3).__dlpack__())
    assert seen(once).shape == (3,)
    _refused(once, "no unused DLPack capsule")


def test_what_is_no_capsule() -> None:
    new_capsule = ctypes.pythonapi.PyCapsule_New
    new_capsule.restype = ctypes.py_object
    new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    other = new_capsule(ctypes.addressof(ctypes.c_int(0)), b"something else", None)
    for value in (None, 3, "dltensor", object(), other):
        _refused(Capsule(value), "no unused DLPack capsule")
    _refused(np.zeros(3).__dlpack__(), "type PyCapsule")


def test_exporters_that_fail() -> None:
    class Broken:
        def __init__(self, error: Exception) -> None:
            self.error = error

        def __dlpack__(self, **_: Any) -> Any:
            raise self.error

    _refused(Broken(BufferError("not\nnow")), "not now")
    _refused(Broken(TypeError("cannot")), "cannot")
    _refused(Broken(RuntimeError("no memory")), "no memory")
    _refused(Broken(ZeroDivisionError("by nought")), "ZeroDivisionError: by nought")
    for error in (KeyboardInterrupt, MemoryError, edgegrad.BackendError):  # not about the array
        with pytest.raises(error):
            seen(Broken(error()))


class Patched:
    """Exports a NumPy array whose tensor says something else of itself."""

    def __init__(self, array: np.ndarray, **changed: int) -> None:
        self.array, self.changed = array, changed

    def __dlpack__(self, **_: Any) -> Any:
        capsule = self.array.__dlpack__()
        tensor = simt.dlpack.tensor_in(capsule)
        for name, value in self.changed.items():
            setattr(tensor, name, value)
        return capsule


@pytest.mark.parametrize(
    ("device_type", "device"),
    [(1, "cpu"), (3, "cpu"), (2, "cuda:5"), (13, "cuda:5"), (7, "DLPack type 7")],
)
def test_places_by_dlpack(device_type: int, device: str) -> None:
    """Pinned host memory is host memory, managed memory is the device's."""
    v = seen(Patched(np.zeros(3), device_type=device_type, device_id=5))
    assert v.device == device


def test_byte_offsets() -> None:
    a = np.arange(6.0)
    v = seen(Patched(a, byte_offset=16))
    assert v.ptr == a.ctypes.data + 16


@pytest.mark.parametrize(
    ("changed", "text"),
    [({"lanes": 2}, "dtype of another kind"), ({"code": 3}, "dtype of another")],
)
def test_dlpack_dtypes_without_a_name(changed: dict[str, int], text: str) -> None:
    with pytest.raises(TypeError, match=f"`offsets` has {text}"):
        edgegrad.make_csc(Patched(np.zeros(3, np.int64), **changed), np.zeros(0, np.int64))


def test_dlpack_of_less_than_bytes() -> None:
    _refused(Patched(np.zeros(3, np.int8), bits=4), "items narrower than a byte")


def test_many_imports_leave_nothing_behind() -> None:
    a = np.zeros((0, 4))
    before = _resident()
    for _ in range(50_000):
        seen(Exporter(a))
        a.__dlpack__()
    assert _resident() - before < 5e6


def _resident() -> float:
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * 4096.0


# ---- device arrays


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32", "int64", "bool"])
def test_cuda_interface(gpu: Any, dtype: str) -> None:
    a = cp.zeros((4, 6), dtype)
    v = seen(a[:, 1:4])
    assert (v.ptr, v.shape) == (a.data.ptr + a.itemsize, (4, 3))
    assert (v.strides, v.dtype, v.device) == ((6, 1), dtype, "cuda:0")
    assert v.__cuda_array_interface__["data"] == (v.ptr, False)
    assert not hasattr(v, "__array_interface__")
    assert v.__dlpack_device__() == (2, 0)


def test_bfloat16_of_a_device(gpu: Any) -> None:
    """The CUDA array interface has no name for it; DLPack has."""
    a = cp.asarray(np.arange(6, dtype=ml_dtypes.bfloat16).reshape(2, 3))
    v = seen(a)
    assert (v.ptr, v.dtype, v.device, v.shape) == (a.data.ptr, "bfloat16", "cuda:0", (2, 3))
    assert not hasattr(v, "__cuda_array_interface__")


def test_device_arrays_come_back(gpu: Any) -> None:
    a = cp.arange(24, dtype=np.float32).reshape(4, 6)[:, 1:4]
    taken = cp.asarray(seen(a))
    assert taken.data.ptr == a.data.ptr
    np.testing.assert_array_equal(taken.get(), a.get())


class Interface:
    """An array that has a CUDA array interface alone."""

    def __init__(self, array: Any = None, **changed: Any) -> None:
        self.array = array
        described = {
            "version": 3,
            "shape": (4, 3),
            "typestr": "<f4",
            "data": (0 if array is None else array.data.ptr, False),
            **changed,
        }
        self.__cuda_array_interface__ = {k: v for k, v in described.items() if v is not ...}


@pytest.mark.parametrize("shape", [(0,), (0, 2), (4, 0)])
def test_null_pointers_of_empty_arrays(gpu: Any, shape: tuple[int, ...]) -> None:
    for strides in (None, ..., (8,) * len(shape)):
        v = seen(Interface(shape=shape, strides=strides))
        assert (v.ptr, v.shape, v.size, v.device) == (0, shape, 0, "cuda:0")


def test_read_only_device_memory(gpu: Any) -> None:
    a = cp.zeros((4, 3), np.float32)
    assert seen(Interface(a, data=(a.data.ptr, True))).readonly


@pytest.mark.parametrize(
    ("changed", "error", "text"),
    [
        ({"typestr": ">f4"}, TypeError, "type string >f4"),
        ({"strides": (13, 4)}, ValueError, "a stride of 13 bytes"),
        ({"shape": (1,) * 7}, ValueError, "7 axes"),
        ({"typestr": "f"}, TypeError, "type string f"),
    ],
)
def test_bad_interfaces(gpu: Any, changed: Any, error: Any, text: str) -> None:
    a = cp.zeros((4, 3), np.float32)
    with pytest.raises(error, match=f"f: `a` has .*{text}.*, expected "):
        seen(Interface(a, **changed))


@pytest.mark.parametrize("missing", ["shape", "typestr", "data"])
def test_interfaces_that_lack_an_entry(gpu: Any, missing: str) -> None:
    a = cp.zeros((4, 3), np.float32)
    with pytest.raises((TypeError, ValueError), match="f: `a` has .*, expected ") as caught:
        seen(Interface(a, **{missing: ...}))
    assert isinstance(caught.value, edgegrad.ArgumentError)


def test_pending_work_is_waited_for(gpu: Any) -> None:
    """Only where the producer's stream is another than the one the array will be used on."""
    a = cp.zeros((4, 3), np.float32)
    producer, ours = cp.cuda.Stream().ptr, cp.cuda.Stream().ptr

    def waits(stream: Any, used_on: int) -> list[tuple[int, int]]:
        gpu.waits.clear()
        seen(Interface(a, stream=stream), used_on)
        return list(gpu.waits)

    assert waits(producer, ours) == [(ours, producer)]
    assert waits(producer, 0) == [(0, producer)]
    assert waits(1, ours) == [(ours, 1)]
    assert waits(2, 0) == [(0, 2)]
    assert waits(producer, producer) == []
    assert waits(1, 0) == []  # the legacy default stream, by its two names
    assert waits(None, ours) == []
    assert waits(..., ours) == []


def test_stream_zero_is_refused(gpu: Any) -> None:
    a = cp.zeros((4, 3), np.float32)
    message = "f: `a` has stream 0 in its CUDA array interface, expected None, 1, 2 or"
    with pytest.raises(ValueError, match=message) as caught:
        seen(Interface(a, stream=0))
    assert isinstance(caught.value, edgegrad.ArgumentError)


class DeviceExporter:
    """A device array that speaks DLPack alone."""

    def __init__(self, array: Any) -> None:
        self.array, self.asked = array, []

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()

    def __dlpack__(self, **options: Any) -> Any:
        self.asked.append(options)
        return self.array.__dlpack__(**options)


def test_dlpack_is_told_the_stream(gpu: Any) -> None:
    a = cp.zeros((4, 3), np.float32)
    for stream, told in ((0, 1), (1, 1), (2, 2), (0x5100, 0x5100)):
        exporter = DeviceExporter(a)
        v = seen(exporter, stream)
        assert exporter.asked[0]["stream"] == told
        assert (v.ptr, v.device, v.dtype) == (a.data.ptr, "cuda:0", "float32")


def test_host_exporters_are_not_told_a_stream() -> None:
    exporter = Exporter(np.zeros(3))
    seen(exporter, 0x5100)
    assert exporter.asked[0].get("stream") is None


def test_devices_do_not_overlap(gpu: Any) -> None:
    a = cp.zeros(8, np.float32)
    host = a._host  # the same addresses, seen from the host
    assert not overlap(seen(a), seen(host))
    assert overlap(seen(a), seen(a[3:5]))


@pytest.mark.parametrize("dim", [0, 3])
def test_operator_on_foreign_device_arrays(gpu: Any, dim: int) -> None:
    """An output that exports by DLPack, an input that has an interface alone; also no columns."""
    place = devices.Simt()
    graph = graphs.G0.make(place)
    x = np.random.default_rng(0).standard_normal((4, dim)).astype(np.float32)
    on_device = place.array(x)
    out = place.poisoned((4, 3 * dim), np.float32)
    source = Interface(on_device, shape=x.shape) if dim else Interface(shape=x.shape)
    edgegrad.operators.agg_hg_basis_n2n_post_fwd(DeviceExporter(out), source, None, graph)
    expected = np.full((4, 3 * dim), np.nan, np.float32)
    host = graphs.G0.make(devices.Host())
    edgegrad.operators.agg_hg_basis_n2n_post_fwd(expected, x, None, host)
    np.testing.assert_allclose(place.numpy(out), expected, rtol=1e-6)
