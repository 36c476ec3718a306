"""`interop.view`: arrays of NumPy and the standard library, layouts, and what is refused."""

from __future__ import annotations

import array
import ctypes
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import edgegrad
from edgegrad._host import overlap
from edgegrad.interop import ArrayView, view

DTYPES = (
    *("float16", "float32", "float64", "int8", "int16", "int32", "int64"),
    *("uint8", "uint16", "uint32", "uint64", "bool", "complex64", "complex128"),
)


def seen(a: Any, stream_id: int = 0) -> ArrayView:
    return view("f", "a", a, stream_id)


@pytest.mark.parametrize("dtype", DTYPES)
def test_numpy(dtype: str) -> None:
    a = np.zeros((2, 3), dtype)
    v = seen(a)
    assert (v.ptr, v.shape, v.strides) == (a.ctypes.data, (2, 3), (3, 1))
    assert (v.dtype, v.device, v.itemsize, v.nbytes) == (dtype, "cpu", a.itemsize, a.nbytes)
    assert (v.ndim, v.size, len(v), v.readonly) == (2, 6, 2, False)
    assert v.rows_contiguous
    assert not v.self_overlapping
    assert repr(v) == f"ArrayView({dtype} (2, 3) on cpu)"


def test_numpy_bfloat16() -> None:
    a = np.arange(6, dtype=ml_dtypes.bfloat16).reshape(2, 3)
    v = seen(a[:, :2])
    assert (v.ptr, v.dtype, v.shape, v.strides) == (a.ctypes.data, "bfloat16", (2, 2), (3, 1))
    assert not v.readonly
    a.setflags(write=False)
    assert seen(a).readonly
    assert seen(np.zeros((0, 3), ml_dtypes.bfloat16)).shape == (0, 3)


def test_read_only_numpy() -> None:
    a = np.zeros(3)
    a.setflags(write=False)
    assert seen(a).readonly
    assert seen(np.broadcast_to(np.float32(1), (2, 2))).readonly


def test_subclasses_of_numpy() -> None:
    class Mine(np.ndarray):
        pass

    a = np.arange(4, dtype=np.float32)
    assert seen(a.view(Mine)).ptr == a.ctypes.data
    assert seen(np.ma.MaskedArray(a)).shape == (4,)
    file = np.array(a)
    assert seen(file.view(np.recarray)).dtype == "float32"


def test_standard_library() -> None:
    a = array.array("f", [1.0, 2.0, 3.0])
    assert (seen(a).dtype, seen(a).shape, seen(a).ptr) == ("float32", (3,), a.buffer_info()[0])
    assert seen(array.array("q", [1])).dtype == "int64"
    assert seen(array.array("l", [1])).dtype == f"int{8 * array.array('l').itemsize}"
    m = memoryview(np.zeros((3, 4), np.float64))[::2]
    assert (seen(m).shape, seen(m).strides) == ((2, 4), (8, 1))
    assert seen(memoryview(b"abcd").cast("i")).readonly
    assert seen(bytearray(4)).dtype == "uint8"
    assert seen((ctypes.c_double * 5)()).dtype == "float64"


def test_buffers_are_held_and_released() -> None:
    a = bytearray(8)
    v = seen(a)
    with pytest.raises(BufferError):
        a.append(1)
    del v
    a.append(1)


def test_strides() -> None:
    a = np.zeros((4, 6, 8), np.float32)
    assert seen(a[::2, :, ::2]).strides == (96, 8, 2)
    assert not seen(a[..., ::2]).rows_contiguous
    assert seen(a[:, ::3, 2:5]).rows_contiguous
    assert seen(a[::-1]).strides == (-48, 8, 1)
    assert seen(a[::-1]).ptr == a.ctypes.data + 3 * 48 * 4
    assert seen(a[..., ::-1]).strides == (48, 8, -1)
    assert not seen(a[..., ::-1]).rows_contiguous
    assert seen(a.T).shape == (8, 6, 4)
    assert seen(a[..., 3:4]).rows_contiguous  # one column: no stride is wrong
    assert seen(np.float32(2.0)).shape == ()


@pytest.mark.parametrize("shape", [(0,), (0, 4), (4, 0), (2, 0, 3)])
def test_zero_size(shape: tuple[int, ...]) -> None:
    v = seen(np.zeros(shape, np.float32))
    assert (v.shape, v.size, v.nbytes) == (shape, 0, 0)
    assert v.rows_contiguous
    assert not v.self_overlapping
    assert not overlap(v, v)


def test_most_axes() -> None:
    assert seen(np.zeros((1,) * 6)).ndim == 6
    with pytest.raises(ValueError, match="`a` has 7 axes, expected at most 6"):
        seen(np.zeros((1,) * 7))


def test_records() -> None:
    """The field of a record may lie at any address, at any distance from the next."""
    packed = np.zeros(6, dtype=[("tag", "u1"), ("x", "f4")])
    with pytest.raises(ValueError, match="`a` has a stride of 5 bytes, expected a multiple"):
        seen(packed["x"])
    odd = np.zeros(6, dtype={"names": ["x"], "formats": ["f4"], "offsets": [2], "itemsize": 8})
    with pytest.raises(ValueError, match="address that is not a multiple of its item size"):
        seen(odd["x"])
    even = np.zeros(6, dtype=[("x", "f4"), ("y", "f4"), ("z", "i4")])
    assert (seen(even["y"]).strides, seen(even["z"]).dtype) == ((3,), "int32")
    assert seen(packed["x"][:1]).shape == (1,) if packed["x"].ctypes.data % 4 == 0 else True


REFUSED = [
    np.zeros(3, ">f4"),
    np.zeros(3, ">i8"),
    np.zeros(3, "S4"),
    np.zeros(3, "U4"),
    np.zeros(3, "M8[s]"),
    np.zeros(3, [("x", "f4")]),
    np.array([None, 1]),
    np.zeros(3, np.longdouble),
]


@pytest.mark.parametrize("a", REFUSED, ids=lambda a: str(a.dtype))
def test_dtypes_without_a_name(a: Any) -> None:
    """They are refused where a dtype is asked for, or at once; never taken for another."""
    graph = edgegrad.make_csc(np.array([0, 0]), np.zeros(0, np.int64))
    assert graph.n_dst_nodes == 1
    with pytest.raises(TypeError, match="`offsets` has ") as caught:
        edgegrad.make_csc(a, np.zeros(0, np.int64))
    assert isinstance(caught.value, edgegrad.ArgumentError)


NO_ARRAYS = [None, 1, 2.5, True, "abc", [1, 2], (1.0,), {}, {1}, object(), iter([]), slice(3)]


@pytest.mark.parametrize("a", NO_ARRAYS, ids=lambda a: type(a).__name__)
def test_no_arrays(a: Any) -> None:
    message = f"f: `a` has type {type(a).__name__}, expected an array"
    with pytest.raises(TypeError, match=message) as caught:
        seen(a)
    assert isinstance(caught.value, edgegrad.ArgumentError)
    assert caught.value.__cause__ is None
    assert "\n" not in str(caught.value)


def test_views_of_views() -> None:
    v = seen(np.zeros(3))
    assert seen(v) is v


def test_the_owner_stays_alive() -> None:
    v = seen(np.full(1000, 7.0))
    junk = [np.zeros(1000) for _ in range(20)]
    np.testing.assert_array_equal(np.asarray(v), 7.0)
    exported = np.from_dlpack(v)
    del v
    junk += [np.zeros(1000) for _ in range(20)]
    np.testing.assert_array_equal(exported, 7.0)


# ---- export


@pytest.mark.parametrize("dtype", DTYPES)
def test_back_to_numpy(dtype: str) -> None:
    a = np.arange(24).reshape(4, 6).astype(dtype)[:, 1:4]
    for taken in (np.asarray(seen(a)), np.from_dlpack(seen(a))):
        assert taken.ctypes.data == a.ctypes.data
        assert taken.dtype == a.dtype
        assert taken.strides == a.strides
        np.testing.assert_array_equal(taken, a)


def test_writes_through_an_export() -> None:
    a = np.zeros((2, 2), np.float32)
    np.asarray(seen(a))[1, 0] = 5
    np.from_dlpack(seen(a))[0, 1] = 6
    np.testing.assert_array_equal(a, [[0, 6], [5, 0]])


def test_read_only_stays_read_only() -> None:
    a = np.arange(3.0)
    a.setflags(write=False)
    taken = np.asarray(seen(a))
    assert not taken.flags.writeable
    assert not np.from_dlpack(seen(a)).flags.writeable


def test_bfloat16_has_no_array_interface() -> None:
    v = seen(np.zeros(3, ml_dtypes.bfloat16))
    assert not hasattr(v, "__array_interface__")
    assert not hasattr(seen(np.zeros(3)), "__cuda_array_interface__")
    assert v.__dlpack_device__() == (1, 0)


# ---- overlap


def _overlap(a: np.ndarray, b: np.ndarray) -> bool:
    assert overlap(seen(a), seen(b)) == overlap(seen(b), seen(a))
    return overlap(seen(a), seen(b))


def test_overlap() -> None:
    a = np.zeros((6, 8), np.float32)
    assert _overlap(a, a)
    assert _overlap(a, a[2:3, 3:4])
    assert not _overlap(a, np.zeros_like(a))
    assert not _overlap(a[:3], a[3:])
    assert _overlap(a[:4], a[3:])
    assert not _overlap(a[:, :4], a[:, 4:])  # blocks of columns interleave without touching
    assert not _overlap(a[:, :3], a[:, 5:])
    assert _overlap(a[:, :5], a[:, 4:])
    assert _overlap(a[1:, :4], a[:, 2:6])
    assert not _overlap(a[1:, :4], a[:-1, 4:])
    assert _overlap(a.reshape(-1)[:9], a[1])
    assert not _overlap(a[::-1][:3], a[:3])
    assert _overlap(a[::-1][:3], a[3:4])
    assert not _overlap(a[:0], a)


def test_overlap_of_other_types() -> None:
    raw = np.zeros(64, np.uint8)
    assert _overlap(raw[:8].view(np.float64), raw[4:8].view(np.float32))
    assert not _overlap(raw[:8].view(np.float64), raw[8:12].view(np.float32))
    assert _overlap(raw[:2].view(ml_dtypes.bfloat16), raw[:2].view(np.float16))


def test_overlap_by_brute_force() -> None:
    """Against sets of bytes: what is called apart is apart; equal pitches are told exactly."""
    rng = np.random.default_rng(0)
    whole = np.zeros(200, np.int16)
    for _ in range(400):
        pitch = int(rng.integers(4, 9))
        parts = []
        for _ in range(2):
            begin, rows, width = rng.integers(0, 60), rng.integers(1, 6), rng.integers(1, pitch + 1)
            strides = (2 * pitch, 2)
            parts.append(as_strided(whole[begin:], (int(rows), int(width)), strides))
        exact = np.shares_memory(*parts)
        told = _overlap(*parts)
        assert told or not exact
        if parts[0].shape[1] + parts[1].shape[1] <= pitch:
            assert told == exact, [(p.ctypes.data - whole.ctypes.data, p.shape) for p in parts]


def test_self_overlapping() -> None:
    a = np.zeros(100, np.float32)

    def strided(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
        begin = a[50:] if min(strides) < 0 else a
        return seen(as_strided(begin, shape, [4 * s for s in strides])).self_overlapping

    assert not strided((4, 5), (5, 1))
    assert strided((4, 5), (4, 1))
    assert strided((4, 5), (0, 1))
    assert not strided((4, 5), (1, 4))
    assert strided((5, 5), (1, 4))
    assert not strided((1, 5), (0, 1))
    assert not strided((0, 5), (0, 1))
    assert not strided((4, 5), (-5, 1))
    assert strided((4, 5), (-3, 1))
    assert not strided((2, 3, 5), (15, 5, 1))
    assert strided((2, 3, 5), (10, 5, 1))
    assert not strided((3, 1, 5), (5, 0, 1))
