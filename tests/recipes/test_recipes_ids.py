"""R17, R18 and R19: index dtypes, ids and offsets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import edgegrad
from edgegrad.graph import build
from graphs import G0
from recipes.calls import (
    PLAIN,
    WEIGHTED,
    WEIGHTED_DW,
    WEIGHTED_DX,
    G,
    W,
    X,
    array_module,
    assert_close,
    backward,
    edge_ids,
    forward,
)


def _make(device: Any, **changes: Any) -> Any:
    """G0 with one edge type, int32 unless changed; changed arrays are NumPy's."""
    given: dict[str, Any] = {
        "offsets": PLAIN.offsets.astype(np.int32),
        "indices": PLAIN.indices.astype(np.int32),
        "edge_types": PLAIN.edge_types,
        "map_csc_to_coo": PLAIN.edge_ids.astype(np.int32),
        **changes,
    }
    arrays = {k: None if a is None else device.array(a) for k, a in given.items()}
    return edgegrad.make_csc_hg(**arrays, n_node_types=0, n_edge_types=1, node_types=None)


def _assert_weighted_sum(device: Any, struct: Any) -> None:
    x, g, w = (device.array(a) for a in (X, G, W[PLAIN.edge_ids]))
    assert_close(forward(device, struct, x, edge_weight=w), WEIGHTED)
    d = backward(device, struct, g, x, edge_weight=w)
    assert_close(d.x, WEIGHTED_DX)
    assert_close(d.edges, WEIGHTED_DW)


# ---- R17


@pytest.mark.parametrize("map_ids", [np.int32, np.int64], ids=["map32", "map64"])
@pytest.mark.parametrize("indices", [np.int32, np.int64], ids=["indices32", "indices64"])
@pytest.mark.parametrize("offsets", [np.int32, np.int64], ids=["offsets32", "offsets64"])
def test_r17_widths_are_promoted_never_narrowed(
    device: Any, offsets: Any, indices: Any, map_ids: Any
) -> None:
    struct = _make(
        device,
        offsets=PLAIN.offsets.astype(offsets),
        indices=PLAIN.indices.astype(indices),
        map_csc_to_coo=PLAIN.edge_ids.astype(map_ids),
    )
    wide = np.int64 in (offsets, indices, map_ids)
    width = "int64" if wide else "int32"
    assert type(struct).__name__ == f"csc_hg_{width}"
    assert struct.index_dtype == width
    rev = build.reverse(struct)
    arrays = (struct.offsets, struct.indices, struct.map_csc_to_coo)
    assert {a.dtype for a in (*arrays, rev.offsets, rev.dst, rev.position)} == {width}
    _assert_weighted_sum(device, struct)


def test_r17_reverse_graph(device: Any, IdxT: Any) -> None:
    rev = build.reverse(PLAIN.make(device, IdxT))
    xp = array_module(device)
    offsets, dst, position = (
        device.numpy(xp.asarray(a)) for a in (rev.offsets, rev.dst, rev.position)
    )
    assert offsets.tolist() == [0, 2, 4, 5, 6]
    assert dst.tolist() == [1, 3, 0, 3, 0, 3]
    assert PLAIN.edge_ids[position].tolist() == [2, 5, 4, 1, 0, 3]


@pytest.mark.parametrize("dtype", ["uint32", "int16", "uint64", "float64", "bool", "int8"])
@pytest.mark.parametrize("name", ["offsets", "indices", "map_csc_to_coo"])
def test_r17_other_id_dtypes_are_refused(device: Any, name: str, dtype: str) -> None:
    values = {"map_csc_to_coo": G0.edge_ids}.get(name, getattr(G0, name, None))
    assert values is not None
    with pytest.raises(TypeError, match=f"`{name}` has dtype {dtype}, expected int32 or int64"):
        _make(device, **{name: values.astype(dtype)})


@pytest.mark.parametrize("dtype", ["int64", "uint8", "float32"])
def test_r17_edge_types_are_int32(device: Any, dtype: str) -> None:
    with pytest.raises(TypeError, match=f"`edge_types` has dtype {dtype}, expected int32"):
        _make(device, edge_types=PLAIN.edge_types.astype(dtype))


@pytest.mark.parametrize("dtype", ["uint32", "int16", "uint64", "float64"])
def test_r17_edge_list_dtypes(device: Any, dtype: str) -> None:
    good, bad = (device.array(np.array([0, 1], t)) for t in (np.int32, dtype))
    for name, ends in (("src", (bad, good)), ("dst", (good, bad))):
        with pytest.raises(TypeError, match=f"`{name}` has dtype {dtype}, expected int32 or int64"):
            edgegrad.from_coo(*ends, 2)


def test_r17_edge_list_of_two_widths(device: Any) -> None:
    src, dst = device.array(np.array([1, 0], np.int32)), device.array(np.array([0, 1], np.int64))
    struct = edgegrad.from_coo(src, dst, 2)
    assert struct.index_dtype == struct.map_csc_to_coo.dtype == "int64"


# ---- R18


@pytest.mark.parametrize("value", [4, -1, 2**31, 2**32, -(2**63)])
def test_r18_id_out_of_range(device: Any, value: int) -> None:
    indices = PLAIN.indices.copy()
    indices[3] = value
    ids = indices if abs(value) >= 2**31 else indices.astype(np.int32)
    message = rf"`indices\[3\]` has the value {value}, expected a source in \[0, 4\)"
    with pytest.raises(IndexError, match=message) as caught:
        _make(device, indices=ids)
    assert isinstance(caught.value, ValueError)
    _assert_weighted_sum(device, _make(device))  # nothing is broken for the calls that follow


def test_r18_first_of_many_is_named(device: Any) -> None:
    n = 5000
    indices = np.arange(n) % 4
    indices[[700, 2900, 4999]] = [9, -7, 8]
    offsets = np.array([0, 0, 1, n, n])
    changes = {"edge_types": np.zeros(n, np.int32), "map_csc_to_coo": None}
    with pytest.raises(IndexError, match=r"`indices\[700\]` has the value 9,"):
        _make(device, offsets=offsets, indices=indices, **changes)


@pytest.mark.parametrize("value", [3, -1])
def test_r18_edge_type_out_of_range(device: Any, value: int) -> None:
    types = G0.edge_types.copy()
    types[4] = value
    ids = (device.array(a) for a in (G0.offsets, G0.indices))
    message = rf"`edge_types\[4\]` has the value {value}, expected a type in \[0, 3\)"
    with pytest.raises(ValueError, match=message):
        edgegrad.make_csc_hg(*ids, 0, 3, None, device.array(types))


@pytest.mark.parametrize(
    ("position", "value", "message"),
    [
        (2, 6, r"`map_csc_to_coo\[2\]` has the value 6, expected an edge id in \[0, 6\)"),
        (5, -1, r"`map_csc_to_coo\[5\]` has the value -1, expected an edge id in \[0, 6\)"),
        (3, 4, r"`map_csc_to_coo\[\d\]` has the value 4, expected every edge id once"),
    ],
)
def test_r18_edge_map_is_a_permutation(
    device: Any, position: int, value: int, message: str
) -> None:
    edge_map = PLAIN.edge_ids.copy()
    edge_map[position] = value
    with pytest.raises(ValueError, match=message):
        _make(device, map_csc_to_coo=edge_map)


@pytest.mark.parametrize("value", [4, -1, 2**32])
@pytest.mark.parametrize("name", ["src", "dst"])
def test_r18_edge_list_out_of_range(device: Any, name: str, value: int) -> None:
    ends = {"src": np.array([2, 1, 0, 3]), "dst": np.array([0, 3, 1, 3])}
    ends[name][2] = value
    message = rf"`{name}\[2\]` has the value {value}, expected an id in \[0, 4\)"
    with pytest.raises(IndexError, match=message):
        edgegrad.from_coo(*(device.array(a) for a in ends.values()), 4)


def test_r18_no_key_of_source_and_destination_overflows(device: Any) -> None:
    n_src = 2**62
    src, dst = (device.array(np.array(a)) for a in ([5, n_src - 1, 0], [3, 0, 3]))
    struct = edgegrad.from_coo(src, dst, n_src, 4)
    xp = array_module(device)
    offsets, indices = (device.numpy(xp.asarray(a)) for a in (struct.offsets, struct.indices))
    assert offsets.tolist() == [0, 1, 1, 1, 3]
    assert indices.tolist() == [n_src - 1, 5, 0]
    assert edge_ids(device, struct).tolist() == [1, 0, 2]
    with pytest.raises(
        ValueError, match=f"`n_src_nodes` has the value {n_src}, expected a number "
    ):
        struct.build_reverse()


# ---- R19

MAKERS = pytest.mark.parametrize(
    "make",
    [
        lambda offsets, indices, types: edgegrad.make_csc(offsets, indices),
        lambda offsets, indices, types: edgegrad.make_bipartite_csc(offsets, indices, 4),
        lambda offsets, indices, types: edgegrad.make_csc_hg(offsets, indices, 0, 1, None, types),
        lambda offsets, indices, types: edgegrad.make_bipartite_csc_hg(
            offsets, indices, 4, 0, 1, None, None, types
        ),
    ],
    ids=["csc", "bipartite_csc", "csc_hg", "bipartite_csc_hg"],
)


@MAKERS
@pytest.mark.parametrize(
    ("offsets", "message"),
    [
        (np.zeros(0, int), "`offsets` has length 0, expected"),
        (np.array([1, 2, 3, 3, 6]), r"`offsets\[0\]` has the value 1, expected 0 at the start"),
        (np.array([0, 3, 2, 3, 6]), r"`offsets\[2\]` has the value 2, expected offsets that do"),
        (np.array([0, 2, 3, 3, 5]), r"`offsets\[4\]` has the value 5, expected n_indices=6"),
        (np.array([0, 2, 3, 3, 7]), r"`offsets\[4\]` has the value 7, expected n_indices=6"),
        (np.array([0, 2, 9, 3, 6]), r"`offsets\[3\]` has the value 3, expected offsets that do"),
        (np.array([[0, 2, 3, 3, 6]]), r"`offsets` has shape \(1, 5\), expected one axis"),
        (np.array(0), r"`offsets` has shape \(\), expected one axis"),
    ],
)
def test_r19_bad_offsets_are_named(
    device: Any, IdxT: Any, make: Callable[..., Any], offsets: np.ndarray, message: str
) -> None:
    arrays = (offsets.astype(IdxT), PLAIN.indices.astype(IdxT), PLAIN.edge_types)
    with pytest.raises(ValueError, match=message):
        make(*(device.array(a) for a in arrays))


@MAKERS
def test_r19_float_offsets(device: Any, make: Callable[..., Any]) -> None:
    arrays = (PLAIN.offsets.astype(np.float64), PLAIN.indices, PLAIN.edge_types)
    with pytest.raises(TypeError, match="`offsets` has dtype float64, expected int32 or int64"):
        make(*(device.array(a) for a in arrays))
