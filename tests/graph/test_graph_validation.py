"""What is wrong with a graph is said at its construction: argument, position, value, rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import edgegrad
import simt
from graphs import G0

_PARTS = {
    "offsets": G0.offsets,
    "indices": G0.indices,
    "edge_types": G0.edge_types,
    "map_csc_to_coo": G0.edge_ids,
}


def _changed(name: str, position: int, value: int, width: Any) -> dict[str, np.ndarray]:
    parts = {k: a.astype(np.int32 if k == "edge_types" else width) for k, a in _PARTS.items()}
    parts[name][position] = value
    return parts


def _on(device: Any, parts: dict[str, np.ndarray]) -> dict[str, Any]:
    return {name: device.array(a) for name, a in parts.items()}


def _csc_hg(a: dict[str, Any], **options: Any) -> Any:
    return edgegrad.make_csc_hg(
        a["offsets"], a["indices"], 0, 3, None, a["edge_types"], a["map_csc_to_coo"], **options
    )


def _bipartite_csc_hg(a: dict[str, Any], **options: Any) -> Any:
    return edgegrad.make_bipartite_csc_hg(
        a["offsets"],
        a["indices"],
        4,
        0,
        3,
        None,
        None,
        a["edge_types"],
        a["map_csc_to_coo"],
        **options,
    )


def _csc(a: dict[str, Any], **options: Any) -> Any:
    return edgegrad.make_csc(a["offsets"], a["indices"], a["map_csc_to_coo"], **options)


def _bipartite_csc(a: dict[str, Any], **options: Any) -> Any:
    return edgegrad.make_bipartite_csc(
        a["offsets"], a["indices"], 4, a["map_csc_to_coo"], **options
    )


FACTORIES: dict[str, Callable[..., Any]] = {
    "make_csc": _csc,
    "make_bipartite_csc": _bipartite_csc,
    "make_csc_hg": _csc_hg,
    "make_bipartite_csc_hg": _bipartite_csc_hg,
}

# What is changed, where, to what; where it is found, the error, and the rule.
BROKEN = [
    ("offsets", 0, 1, 0, ValueError, "0 at the start"),
    ("offsets", 0, -1, 0, ValueError, "0 at the start"),
    ("offsets", 4, 5, 4, ValueError, "n_indices=6 at the end"),
    ("offsets", 4, 7, 4, ValueError, "n_indices=6 at the end"),
    ("offsets", 2, 1, 2, ValueError, "offsets that do not decrease"),
    ("offsets", 1, 4, 2, ValueError, "offsets that do not decrease"),
    ("offsets", 1, -3, 1, ValueError, "offsets that do not decrease"),
    ("offsets", 3, 2**31 - 1, 4, ValueError, "offsets that do not decrease"),
    ("indices", 3, 4, 3, IndexError, r"a source in \[0, 4\)"),
    ("indices", 0, -1, 0, IndexError, r"a source in \[0, 4\)"),
    ("indices", 5, 2**31 - 1, 5, IndexError, r"a source in \[0, 4\)"),
    ("indices", 5, -(2**31), 5, IndexError, r"a source in \[0, 4\)"),
    ("edge_types", 5, 3, 5, IndexError, r"a type in \[0, 3\)"),
    ("edge_types", 2, -1, 2, IndexError, r"a type in \[0, 3\)"),
    ("map_csc_to_coo", 1, 6, 1, IndexError, r"an edge id in \[0, 6\)"),
    ("map_csc_to_coo", 4, -1, 4, IndexError, r"an edge id in \[0, 6\)"),
    ("map_csc_to_coo", 5, 4, 5, ValueError, "every edge id once"),
    ("map_csc_to_coo", 0, 5, 3, ValueError, "every edge id once"),
]


def _takes(factory: str, name: str) -> bool:
    return name != "edge_types" or "hg" in factory


@pytest.mark.parametrize("factory", FACTORIES)
@pytest.mark.parametrize("broken", BROKEN, ids=lambda b: f"{b[0]}[{b[1]}]={b[2]}")
def test_broken_rules(device: Any, factory: str, broken: Any, IdxT: Any) -> None:
    name, position, value, found, error, rule = broken
    if not _takes(factory, name):
        assert FACTORIES[factory](_on(device, _changed(name, position, value, IdxT)))
        return
    parts = _changed(name, position, value, IdxT)
    bad = int(parts[name][found])
    message = rf"^{factory}: `{name}\[{found}\]` has the value {bad}, expected {rule}$"
    with pytest.raises(error, match=message) as caught:
        FACTORIES[factory](_on(device, parts))
    assert isinstance(caught.value, edgegrad.ArgumentError)
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, IndexError) == (error is IndexError)
    good = _on(device, _changed(name, found, int(_PARTS[name][found]), IdxT))
    assert FACTORIES[factory](good).n_indices == 6  # nothing is left broken


@pytest.mark.parametrize("value", [2**31, 2**32, -(2**32), 2**62])
def test_wide_ids_are_not_wrapped(device: Any, value: int) -> None:
    parts = _on(device, _changed("indices", 3, value, np.int64))
    with pytest.raises(IndexError, match=rf"`indices\[3\]` has the value {value}, expected"):
        _csc(parts)


def test_the_first_position_is_named(device: Any) -> None:
    """Of many, in many chunks of work."""
    n = 200_000
    indices = np.zeros(n, np.int32)
    indices[[131_070, 131_072, 199_999]] = [7, 8, 9]
    offsets = device.array(np.array([0, n], np.int32))
    with pytest.raises(IndexError, match=r"`indices\[131070\]` has the value 7,"):
        edgegrad.make_csc(offsets, device.array(indices))
    repeated = np.arange(n, dtype=np.int32)
    repeated[150_000] = 3
    with pytest.raises(ValueError, match="every edge id once"):
        edgegrad.make_csc(offsets, device.array(np.zeros(n, np.int32)), device.array(repeated))


def test_validate_false(device: Any) -> None:
    parts = _on(device, _changed("indices", 3, 99, np.int32))
    for make in FACTORIES.values():
        assert make(parts, validate=False).n_indices == 6


def test_validation_on_a_device_is_one_launch(device: Any) -> None:
    if device.name != "simt":
        pytest.skip("only the CPU run counts launches")
    parts = {k: device.array(a.astype(np.int32)) for k, a in _PARTS.items()}
    _csc_hg(parts)
    assert [r.kernel for r in device.launches] == ["edgegrad::validate_csc<int>"]
    device.launches.clear()
    _csc_hg(parts, validate=False)
    assert device.launches == []


# ---- arrays that are no ids at all; these are looked at even without validation


def _spoil_parts(name: str) -> list[tuple[Any, type[Exception], str]]:
    a = _PARTS[name].astype(np.int32)
    is_types = name == "edge_types"
    wrong: list[tuple[Any, type[Exception], str]] = [
        (a.astype(dtype), TypeError, f"dtype {dtype}")
        for dtype in ("int16", "uint32", "uint64", "float32", "float64", "bool", "uint8")
    ]
    wrong += [
        (a.reshape(1, -1), ValueError, "shape"),
        (np.int32(3), ValueError, "shape"),
        (np.repeat(a, 2)[::2], ValueError, "strides"),
        (a[::-1], ValueError, "strides"),
        (a.astype(">i4"), TypeError, "dtype"),
        ([0, 1], TypeError, "type list"),
        ("ids", TypeError, "type str"),
        (3, TypeError, "type int"),
    ]
    if is_types:
        wrong += [(a.astype(np.int64), TypeError, "dtype int64")]
    if name != "map_csc_to_coo":
        wrong += [(None, TypeError, "NoneType")]
    if name != "offsets":
        longer = np.append(a, a[:1])
        wrong += [(longer, ValueError, "shape")] if name != "indices" else []
        wrong += [(a[:-1], ValueError, "shape")] if name != "indices" else []
    else:
        wrong += [(a[:0], ValueError, "length 0")]
    return wrong


@pytest.mark.parametrize("validate", [True, False])
@pytest.mark.parametrize(
    ("factory", "name"), [(f, n) for f in FACTORIES for n in _PARTS if _takes(f, n)]
)
def test_bad_arrays(factory: str, name: str, validate: bool) -> None:
    for bad, error, has in _spoil_parts(name):
        parts = {**{k: a.astype(np.int32) for k, a in _PARTS.items()}, name: bad}
        message = rf"^{factory}: `{name}` has .*{has}.*, expected "
        with pytest.raises(error, match=message) as caught:
            FACTORIES[factory](parts, validate=validate)
        assert isinstance(caught.value, edgegrad.ArgumentError)
        assert "\n" not in str(caught.value)


def test_bad_node_types() -> None:
    ends = [a.astype(np.int32) for a in (G0.offsets, G0.indices)]
    for bad, error in ((np.zeros(5, np.int32), ValueError), (np.zeros(4), TypeError)):
        with pytest.raises(error, match="make_csc_hg: `node_types` has"):
            edgegrad.make_csc_hg(*ends, 1, 3, bad, G0.edge_types)
        for sides, name in (((bad, None), "src_node_types"), ((None, bad), "dst_node_types")):
            with pytest.raises(error, match=f"make_bipartite_csc_hg: `{name}` has"):
                edgegrad.make_bipartite_csc_hg(*ends, 4, 1, 3, *sides, G0.edge_types)


@pytest.mark.parametrize("bad", [-1, 2**63, 1.5, "3", True, None, np.float64(3)], ids=repr)
def test_bad_counts(bad: Any) -> None:
    ends = [a.astype(np.int32) for a in (G0.offsets, G0.indices)]
    error = ValueError if type(bad) is int else TypeError
    calls: dict[str, Callable[[], Any]] = {
        "n_src_nodes": lambda: edgegrad.make_bipartite_csc(*ends, bad),
        "n_node_types": lambda: edgegrad.make_csc_hg(*ends, bad, 3, None, G0.edge_types),
        "n_edge_types": lambda: edgegrad.make_csc_hg(*ends, 0, bad, None, G0.edge_types),
    }
    for name, call in calls.items():
        if name == "n_src_nodes" and bad is None:
            continue
        with pytest.raises(error, match=f"`{name}` has ") as caught:
            call()
        assert isinstance(caught.value, edgegrad.ArgumentError)


def test_a_bipartite_graph_needs_its_number_of_sources() -> None:
    ends = [a.astype(np.int32) for a in (G0.offsets, G0.indices)]
    with pytest.raises(TypeError, match="`n_src_nodes` has type NoneType"):
        edgegrad.make_bipartite_csc(*ends, None)


def test_fewer_sources_than_destinations() -> None:
    ends = [a.astype(np.int32) for a in (G0.offsets, G0.indices)]
    message = "`n_src_nodes` has the value 3, expected at least n_dst_nodes=4 .*make_bipartite_csc"
    with pytest.raises(ValueError, match=message):
        edgegrad.make_csc(*ends, n_src_nodes=3)


def test_most_edge_types() -> None:
    ends = [a.astype(np.int32) for a in (G0.offsets, G0.indices)]
    assert edgegrad.make_csc_hg(*ends, 0, 2**31 - 1, None, G0.edge_types).n_edge_types == 2**31 - 1
    with pytest.raises(ValueError, match=r"`n_edge_types` has the value 2147483648, expected"):
        edgegrad.make_csc_hg(*ends, 0, 2**31, None, G0.edge_types)


def test_arrays_on_two_devices(device: Any) -> None:
    if device.location == "cpu":
        pytest.skip("needs a second device")
    parts = {k: a.astype(np.int32) for k, a in _PARTS.items()}
    for name in ("indices", "edge_types", "map_csc_to_coo"):
        mixed = {k: a if k == name else device.array(a) for k, a in parts.items()}
        with pytest.raises(ValueError, match=f"`{name}` has device cpu, expected cuda:0"):
            _csc_hg(mixed)


def test_what_is_found_does_not_depend_on_the_schedule(device: Any) -> None:
    if device.name != "simt":
        pytest.skip("only the CPU run has schedules")
    n = 600
    edge_map = np.arange(n, dtype=np.int32)
    edge_map[[17, 401, 590]] = 300
    indices = np.zeros(n, np.int32)
    indices[[44, 310]] = -5
    offsets = device.array(np.array([0, n], np.int32))
    with simt.config(seeds=(0, 1, 2, 3), compare_seeds="bitwise"):
        with pytest.raises(ValueError, match=r"`map_csc_to_coo\[300\]` has the value 300,"):
            edgegrad.make_csc(offsets, device.array(indices * 0), device.array(edge_map))
        with pytest.raises(IndexError, match=r"`indices\[44\]` has the value -5,"):
            edgegrad.make_csc(offsets, device.array(indices), device.array(edge_map))
