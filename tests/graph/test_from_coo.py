"""`from_coo`: edges in any order become a graph whose map leads back to them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import edgegrad
from edgegrad.backends import cuda


def numpy(a: Any) -> np.ndarray:
    return np.asarray(a) if a.device == "cpu" else cuda.cupy().asnumpy(cuda.cupy().asarray(a))


def _edges(n_src: int, n_dst: int, n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.integers(0, n_src, n), rng.integers(0, n_dst, n)


@pytest.mark.parametrize(
    ("n_src", "n_dst", "n"), [(5, 5, 40), (9, 4, 30), (3, 3, 0), (0, 0, 0), (7, 0, 0), (1, 1, 9)]
)
def test_stable_order(device: Any, IdxT: Any, n_src: int, n_dst: int, n: int) -> None:
    src, dst = _edges(max(n_src, 1), max(n_dst, 1), n)
    ends = (device.array(src.astype(IdxT)), device.array(dst.astype(IdxT)))
    graph = edgegrad.from_coo(*ends, n_src, n_dst)
    assert type(graph).__name__ == f"csc_{np.dtype(IdxT).name}"
    assert (graph.n_src_nodes, graph.n_dst_nodes, graph.n_indices) == (n_src, n_dst, n)
    order = np.argsort(dst, kind="stable")
    counts = np.bincount(dst, minlength=n_dst)[:n_dst]
    np.testing.assert_array_equal(numpy(graph.map_csc_to_coo), order)
    np.testing.assert_array_equal(numpy(graph.indices), src[order])
    np.testing.assert_array_equal(numpy(graph.offsets), np.concatenate([[0], np.cumsum(counts)]))
    assert graph.edge_types is None
    np.testing.assert_array_equal(device.numpy(ends[0]), src)


@pytest.mark.parametrize("bipartite", [False, True])
@pytest.mark.parametrize("typed", [False, True])
def test_kinds(device: Any, IdxT: Any, bipartite: bool, typed: bool) -> None:
    src, dst = _edges(8, 6, 50, seed=3)
    types = np.random.default_rng(4).integers(0, 4, 50).astype(np.int32)
    ends = (device.array(src.astype(IdxT)), device.array(dst.astype(IdxT)))
    options: dict[str, Any] = {}
    if typed:
        options = {"edge_types": device.array(types), "n_edge_types": 5}
    graph = edgegrad.from_coo(*ends, 8, 6, bipartite=bipartite, **options)
    kind = ("bipartite_" if bipartite else "") + "csc" + ("_hg" if typed else "")
    assert type(graph).__name__ == f"{kind}_{np.dtype(IdxT).name}"
    if typed:
        assert (graph.n_edge_types, graph.n_node_types) == (5, 0)
        order = np.argsort(dst, kind="stable")
        np.testing.assert_array_equal(numpy(graph.edge_types), types[order])


def test_more_destinations_than_sources_are_bipartite() -> None:
    src, dst = np.array([0, 0]), np.array([4, 2])
    with pytest.raises(ValueError, match="`n_src_nodes` has the value 1, expected at least"):
        edgegrad.from_coo(src, dst, 1, 5)
    assert edgegrad.from_coo(src, dst, 1, 5, bipartite=True).n_dst_nodes == 5


def test_sizes_are_never_inferred() -> None:
    graph = edgegrad.from_coo(np.array([0]), np.array([1]), 10)
    assert (graph.n_src_nodes, graph.n_dst_nodes) == (10, 10)
    with pytest.raises(TypeError):
        edgegrad.from_coo(np.array([0]), np.array([1]))
    with pytest.raises(TypeError, match="`n_src_nodes` has type NoneType"):
        edgegrad.from_coo(np.array([0]), np.array([1]), None)


def test_duplicates_and_loops_are_kept(device: Any) -> None:
    src, dst = np.array([2, 2, 1, 2, 1]), np.array([1, 1, 1, 2, 1])
    graph = edgegrad.from_coo(device.array(src), device.array(dst), 3)
    np.testing.assert_array_equal(numpy(graph.indices), [2, 2, 1, 1, 2])
    np.testing.assert_array_equal(numpy(graph.map_csc_to_coo), [0, 1, 2, 4, 3])


@pytest.mark.parametrize("widths", [("int32", "int64"), ("int64", "int32")])
def test_mixed_widths(device: Any, widths: tuple[str, str]) -> None:
    src, dst = _edges(5, 5, 20)
    ends = (device.array(src.astype(widths[0])), device.array(dst.astype(widths[1])))
    graph = edgegrad.from_coo(*ends, 5)
    assert graph.index_dtype == "int64"
    np.testing.assert_array_equal(numpy(graph.indices), src[np.argsort(dst, kind="stable")])


def test_no_product_of_sizes_overflows() -> None:
    src, dst = np.array([5, 2**62 - 1, 0]), np.array([3, 0, 3])
    graph = edgegrad.from_coo(src, dst, 2**62, 4)
    np.testing.assert_array_equal(np.asarray(graph.offsets), [0, 1, 1, 1, 3])
    np.testing.assert_array_equal(np.asarray(graph.indices), [2**62 - 1, 5, 0])
    np.testing.assert_array_equal(np.asarray(graph.map_csc_to_coo), [1, 0, 2])


BAD_IDS = [("src", 3, 5), ("src", 0, -1), ("dst", 6, 4), ("dst", 2, -7), ("src", 1, 2**31 - 1)]


@pytest.mark.parametrize(("name", "position", "value"), BAD_IDS)
def test_ids_out_of_range(device: Any, IdxT: Any, name: str, position: int, value: int) -> None:
    ends = dict(zip(("src", "dst"), _edges(5, 4, 8), strict=True))
    ends[name][position] = value
    limit = 5 if name == "src" else 4
    message = rf"^from_coo: `{name}\[{position}\]` has the value {value}, "
    message += rf"expected an id in \[0, {limit}\)$"
    arrays = [device.array(a.astype(IdxT)) for a in ends.values()]
    with pytest.raises(IndexError, match=message) as caught:
        edgegrad.from_coo(*arrays, 5, 4)
    assert isinstance(caught.value, (ValueError, edgegrad.ArgumentError))


@pytest.mark.parametrize("bipartite", [False, True])
def test_types_out_of_range(device: Any, bipartite: bool) -> None:
    """The position is that of the caller's array, like those of the ends."""
    src, dst = np.array([0, 1, 2, 0]), np.array([2, 1, 0, 0])
    for value in (3, -1):
        types = np.array([0, value, 2, 1], np.int32)
        arrays = [device.array(a) for a in (src, dst, types)]
        message = rf"from_coo: `edge_types\[1\]` has the value {value}, expected .*\[0, 3\)"
        with pytest.raises(IndexError, match=message):
            edgegrad.from_coo(
                *arrays[:2], 3, edge_types=arrays[2], n_edge_types=3, bipartite=bipartite
            )


def test_bad_arrays() -> None:
    src, dst = _edges(5, 5, 8)
    types = np.zeros(8, np.int32)
    wrong: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"src": src.astype(float)}, TypeError, "`src` has dtype float64"),
        ({"dst": dst.astype(np.int16)}, TypeError, "`dst` has dtype int16"),
        ({"dst": dst[:-1]}, ValueError, r"`dst` has shape \(7,\), expected \(8,\)"),
        ({"src": src[::2]}, ValueError, "`src` has strides|`dst` has shape"),
        ({"src": src.reshape(2, 4)}, ValueError, "`src` has shape"),
        ({"src": [0, 1]}, TypeError, "`src` has type list"),
        ({"n_dst_nodes": -1}, ValueError, "`n_dst_nodes` has the value -1"),
        ({"n_src_nodes": 2.0}, TypeError, "`n_src_nodes` has type float"),
        ({"edge_types": types}, TypeError, "`n_edge_types` has type NoneType"),
        ({"edge_types": types[:-1], "n_edge_types": 1}, ValueError, "`edge_types` has shape"),
        ({"edge_types": src, "n_edge_types": 9}, TypeError, "`edge_types` has dtype int64"),
        ({"edge_types": types, "n_edge_types": 1.0}, TypeError, "`n_edge_types` has type float"),
    ]
    for changed, error, message in wrong:
        given: dict[str, Any] = {"src": src, "dst": dst, "n_src_nodes": 5, **changed}
        with pytest.raises(error, match=f"^from_coo: {message}") as caught:
            edgegrad.from_coo(**given)
        assert isinstance(caught.value, edgegrad.ArgumentError)
    assert edgegrad.from_coo(src, dst, 5).n_indices == 8


def test_ends_on_two_devices(device: Any) -> None:
    if device.location == "cpu":
        pytest.skip("needs a second device")
    src, dst = _edges(5, 5, 8)
    with pytest.raises(ValueError, match="`dst` has device cpu, expected cuda:0"):
        edgegrad.from_coo(device.array(src), dst, 5)


def test_validate_false(device: Any) -> None:
    src, dst = (device.array(a) for a in _edges(5, 5, 8))
    graph = edgegrad.from_coo(src, dst, 5, validate=False)
    assert graph.n_indices == 8
