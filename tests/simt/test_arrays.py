"""The stand-in for cupy.ndarray."""

from __future__ import annotations

import operator
import pickle
from typing import Any

import numpy as np
import pytest

from . import SimtError, dlpack, memory
from . import cupy_standin as cp


def test_creation() -> None:
    np.testing.assert_array_equal(cp.zeros((2, 3), np.int8).get(), np.zeros((2, 3), np.int8))
    np.testing.assert_array_equal(cp.full(3, 2.5).get(), np.full(3, 2.5))
    np.testing.assert_array_equal(cp.ones(2, bool).get(), [True, True])
    np.testing.assert_array_equal(cp.arange(2, 5).get(), [2, 3, 4])
    np.testing.assert_array_equal(cp.asarray([[1, 2]], np.float16).get(), [[1, 2]])
    assert cp.empty_like(cp.zeros((3, 4), np.float32)).shape == (3, 4)
    assert cp.zeros(()).get().shape == ()
    with pytest.raises(ValueError, match="negative"):
        cp.empty(-1)


def test_is_as_closed_as_cupy() -> None:
    x = cp.zeros(3)
    assert not isinstance(x, np.ndarray)
    assert not hasattr(x, "__array_interface__")
    with pytest.raises(TypeError, match="implicit conversion"):
        np.asarray(x)
    with pytest.raises(TypeError):
        memoryview(x)
    with pytest.raises(TypeError, match="asarray"):
        cp.concatenate([x, np.zeros(3)])
    with pytest.raises(TypeError, match="asarray"):
        x + np.zeros(3)


CALLS = [
    lambda xp, a, b: xp.argsort(a, kind="stable"),
    lambda xp, a, b: xp.cumsum(a),
    lambda xp, a, b: xp.diff(a),
    lambda xp, a, b: xp.repeat(a, 3),
    lambda xp, a, b: xp.searchsorted(xp.sort(a), b),
    lambda xp, a, b: xp.concatenate([a, b]),
    lambda xp, a, b: xp.bincount(a, minlength=20),
    lambda xp, a, b: xp.nonzero(a > 3)[0],
    lambda xp, a, b: a[b > 3],
    lambda xp, a, b: a[xp.argsort(b)],
    lambda xp, a, b: xp.where(a > b, a, b),
    lambda xp, a, b: a.astype(xp.float32).reshape(4, 2).T @ a.reshape(4, 2),
    lambda xp, a, b: a.max(),
    lambda xp, a, b: xp.unique(a, return_inverse=True)[1],
    lambda xp, a, b: xp.maximum(a, b, out=xp.empty_like(a)),
    lambda xp, a, b: -a // (b + 1) + 2 * a,
    lambda xp, a, b: xp.ascontiguousarray(a[::2]),
]


@pytest.mark.parametrize("call", CALLS)
def test_array_functions(call: Any) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(0, 9, 8) for _ in range(2))
    got, expected = call(cp, cp.asarray(a), cp.asarray(b)), call(np, a, b)
    assert isinstance(got, cp.ndarray)
    assert memory.find(got.data.ptr) is got.allocation
    np.testing.assert_array_equal(got.get(), expected)
    assert got.dtype == expected.dtype


def test_scalars() -> None:
    x = cp.arange(5)
    assert int(x.sum()) == 10
    assert float(x[2]) == 2.0
    assert range(10)[x[3]] == 3
    assert operator.truth(x[1] == 1)
    assert x.sum().item() == 10
    assert x.tolist() == [0, 1, 2, 3, 4]
    assert [int(i) for i in x] == [0, 1, 2, 3, 4]
    assert len(x) == 5


def test_writing() -> None:
    x = cp.empty(6, np.float32)
    x[:2] = 1
    x[cp.asarray([2, 3])] = cp.asarray([5, 6], np.float32)
    assert x.unwritten() == 2
    x[4:].set(np.array([7, 8], np.float32))
    x += 1
    np.add.at(x, cp.asarray([0, 0]), 1)
    np.testing.assert_array_equal(x.get(), [4, 2, 6, 7, 8, 9])
    x.fill(0)
    assert not x.any()
    with pytest.raises(ValueError, match="set to"):
        x.set(np.zeros(6))


@pytest.mark.parametrize(
    "read",
    [
        lambda x: x.get(),
        lambda x: x + 1,
        lambda x: cp.cumsum(x),
        lambda x: x.sum(),
        lambda x: x.astype(int),
        lambda x: cp.asnumpy(x),
        lambda x: cp.zeros(4).__setitem__(slice(None), x),
    ],
)
def test_reading_what_was_never_written(read: Any) -> None:
    x = cp.empty(4)
    x[1:] = 0
    with pytest.raises(SimtError, match="1 of 4 elements"):
        read(x)


@pytest.mark.parametrize("view", [lambda x: x[1:], lambda x: x.T, lambda x: x.reshape(2, 2)])
def test_views_do_not_read(view: Any) -> None:
    x = cp.empty(4)
    part = view(x)
    assert part.allocation is x.allocation
    part[...] = 3
    x[0] = 3
    np.testing.assert_array_equal(x.get(), [3, 3, 3, 3])


def test_pickle() -> None:
    x = pickle.loads(pickle.dumps(cp.arange(3)))
    assert isinstance(x, cp.ndarray)
    np.testing.assert_array_equal(x.get(), [0, 1, 2])


def test_memory_goes_with_the_last_view() -> None:
    x = cp.zeros(10)
    address, view = x.data.ptr, x[5:]
    del x
    assert memory.find(address) is not None
    del view
    assert memory.find(address) is None


def test_alignment() -> None:
    assert all(cp.empty(n, np.int8).data.ptr % 256 == 0 for n in (0, 1, 255, 4096, 5000))


class Exporter:
    def __init__(self, **interface: Any) -> None:
        self.__cuda_array_interface__ = {"version": 3, "strides": None, **interface}


def test_cuda_array_interface() -> None:
    x = cp.arange(12, dtype=np.float16).reshape(3, 4)
    interface = x.__cuda_array_interface__
    assert interface["version"] == 3
    assert interface["typestr"] == "<f2"
    assert interface["shape"] == (3, 4)
    assert interface["strides"] is None
    assert interface["data"] == (x.data.ptr, False)
    assert interface["stream"] == 1
    assert x[:, ::2].__cuda_array_interface__["strides"] == (8, 4)


def test_asarray_of_an_exporter_is_a_view() -> None:
    x = cp.arange(12, dtype=np.float32).reshape(3, 4)
    y = cp.asarray(Exporter(**x[1:, ::2].__cuda_array_interface__))
    y[0, 0] = 50
    assert float(x[1, 0]) == 50
    empty = cp.zeros((0, 4), np.float32)
    assert cp.asarray(Exporter(**empty.__cuda_array_interface__)).shape == (0, 4)
    with pytest.raises(ValueError, match="live simulated device array"):
        cp.asarray(Exporter(shape=(1,), typestr="<f4", data=(0x1000, False)))


@pytest.mark.parametrize("version", [None, (1, 0)])
@pytest.mark.parametrize(("dtype", "code"), [(np.float32, 2), (np.int64, 0), (np.bool_, 6)])
def test_dlpack(version: Any, dtype: Any, code: int) -> None:
    x = cp.zeros((3, 4), dtype)
    assert x.__dlpack_device__() == (2, 0)
    capsule = x[1:].__dlpack__(stream=1, max_version=version)
    tensor = dlpack.tensor_in(capsule)
    assert (tensor.device_type, tensor.device_id) == (2, 0)
    assert tensor.data + tensor.byte_offset == x.data.ptr + 4 * x.itemsize
    assert (tensor.code, tensor.bits, tensor.lanes) == (code, 8 * x.itemsize, 1)
    assert [tensor.shape[i] for i in range(tensor.ndim)] == [2, 4]


def test_dlpack_of_bfloat16() -> None:
    bfloat16 = np.dtype(pytest.importorskip("ml_dtypes").bfloat16)
    x = cp.full(4, 1.5, bfloat16)
    assert x.__cuda_array_interface__["typestr"] == "<V2"
    tensor = dlpack.tensor_in(x.__dlpack__(max_version=(1, 0)))
    assert (tensor.code, tensor.bits, tensor.device_type) == (4, 16, 2)
    np.testing.assert_array_equal(x.get().astype(np.float32), np.full(4, 1.5))


def test_dlpack_keeps_memory_alive() -> None:
    x = cp.zeros(4)
    address, capsule = x.data.ptr, x.__dlpack__()
    del x
    assert memory.find(address) is not None
    del capsule
    assert memory.find(address) is None


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"stream": 0}, ValueError),
        ({"dl_device": (1, 0)}, BufferError),
        ({"copy": True}, BufferError),
    ],
)
def test_dlpack_refuses(options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        cp.zeros(4).__dlpack__(**options)


def test_module() -> None:
    x = cp.zeros(3)
    assert cp.get_array_module(x) is cp
    assert cp.get_array_module(np.zeros(3)) is np
    assert cp.float32 is np.float32
    assert cp.cuda.runtime.getDeviceCount() == 1
    assert x.device.id == 0
    with pytest.raises(AttributeError):
        _ = cp.random
    with pytest.raises(cp.cuda.runtime.CUDARuntimeError):
        cp.cuda.Device(1)
