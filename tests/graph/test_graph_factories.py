"""The eight graph types, what chooses between them, and what they keep of their arrays."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import edgegrad
import graphs
from edgegrad.interop import view
from graphs import G0

KINDS = ("csc", "bipartite_csc", "csc_hg", "bipartite_csc_hg")


def make(kind: str, to: Any, width: Any = np.int32, **parts: Any) -> Any:
    """G0 as a graph of this kind, with other arrays where they are given."""
    arrays = {
        "offsets": G0.offsets.astype(width),
        "indices": G0.indices.astype(width),
        "map_csc_to_coo": G0.edge_ids.astype(width),
        "edge_types": G0.edge_types,
        **parts,
    }
    a = {k: None if v is None else to(v) for k, v in arrays.items()}
    ends, edge_map = (a["offsets"], a["indices"]), a["map_csc_to_coo"]
    if kind == "csc":
        return edgegrad.make_csc(*ends, edge_map)
    if kind == "bipartite_csc":
        return edgegrad.make_bipartite_csc(*ends, 4, edge_map)
    if kind == "csc_hg":
        return edgegrad.make_csc_hg(*ends, 2, 3, None, a["edge_types"], edge_map)
    return edgegrad.make_bipartite_csc_hg(*ends, 4, 2, 3, None, None, a["edge_types"], edge_map)


@pytest.mark.parametrize("kind", KINDS)
def test_type_and_properties(device: Any, kind: str, IdxT: Any) -> None:
    graph = make(kind, device.array, IdxT)
    width = np.dtype(IdxT).name
    assert type(graph) is getattr(edgegrad, f"{kind}_{width}")
    assert isinstance(graph, edgegrad.graph.Graph)
    assert (graph.kind, graph.index_dtype, graph.device) == (kind, width, device.location)
    assert (graph.n_src_nodes, graph.n_dst_nodes, graph.n_indices) == (4, 4, 6)
    hg = "hg" in kind
    assert (graph.n_edge_types, graph.n_node_types) == ((3, 2) if hg else (0, 0))
    assert graph.on_host == (device.location == "cpu")
    for name, width_of in (("offsets", IdxT), ("indices", IdxT), ("map_csc_to_coo", IdxT)):
        assert getattr(graph, name).dtype == np.dtype(width_of).name
        expected = getattr(G0, "edge_ids" if name == "map_csc_to_coo" else name)
        np.testing.assert_array_equal(_numpy(device, getattr(graph, name)), expected)
    if hg:
        np.testing.assert_array_equal(_numpy(device, graph.edge_types), G0.edge_types)
    else:
        assert graph.edge_types is None
    assert graph.src_node_types is None
    assert graph.dst_node_types is None
    assert graph.nbytes == (5 + 6 + 6) * np.dtype(IdxT).itemsize + (6 * 4 if hg else 0)
    assert graph.max_in_degree == 3
    assert not graph.has_reverse


def _numpy(device: Any, a: Any) -> np.ndarray:
    from edgegrad.backends import cuda

    return device.numpy(np.asarray(a) if device.location == "cpu" else cuda.cupy().asarray(a))


@pytest.mark.parametrize("kind", KINDS)
def test_repr(kind: str, IdxT: Any) -> None:
    graph = make(kind, np.asarray, IdxT)
    text = f"{kind}_{np.dtype(IdxT).name}(n_src_nodes=4, n_dst_nodes=4, n_indices=6"
    text += ", n_edge_types=3, n_node_types=2" if "hg" in kind else ""
    assert repr(graph) == f"{text}, device='cpu')"


WIDTHS = list(itertools.product(["int32", "int64"], repeat=3))


@pytest.mark.parametrize("kind", ["csc", "bipartite_csc_hg"])
@pytest.mark.parametrize("widths", WIDTHS, ids="-".join)
def test_ids_are_promoted_never_narrowed(device: Any, kind: str, widths: Any) -> None:
    names = ("offsets", "indices", "map_csc_to_coo")
    sources = (G0.offsets, G0.indices, G0.edge_ids)
    given = {n: device.array(a.astype(w)) for n, a, w in zip(names, sources, widths, strict=True)}
    graph = make(kind, lambda a: a, **given, edge_types=device.array(G0.edge_types))
    wide = "int64" if "int64" in widths else "int32"
    assert graph.index_dtype == wide
    for name, source in zip(names, sources, strict=True):
        a = getattr(graph, name)
        assert a.dtype == wide
        np.testing.assert_array_equal(_numpy(device, a), source)
        kept = a.ptr == view("", "", given[name]).ptr
        assert kept == (given[name].dtype == wide), f"{name}: copied, or wrongly shared"
    if "hg" in kind:
        assert graph.edge_types.dtype == "int32"


def test_nothing_is_copied(device: Any) -> None:
    rng = np.random.default_rng(0)
    offsets, types = np.array([0, 3, 5]), rng.integers(0, 2, 5).astype(np.int32)
    given = [
        device.array(a)
        for a in (offsets, np.array([0, 2, 1, 1, 0]), np.array([4, 3, 2, 1, 0]), types)
    ]
    nodes = [device.array(np.zeros(n, np.int32)) for n in (3, 2)]
    graph = edgegrad.make_bipartite_csc_hg(given[0], given[1], 3, 1, 2, *nodes, given[3], given[2])
    names = ("offsets", "indices", "map_csc_to_coo", "edge_types")
    for name, a in zip((*names, "src_node_types", "dst_node_types"), (*given, *nodes), strict=True):
        assert getattr(graph, name).ptr == view("", "", a).ptr, name
    assert graph.nbytes == sum(a.nbytes for a in (*given, *nodes))


def test_node_types_are_kept() -> None:
    types = np.array([0, 1, 0, 1], np.int32)
    offsets, indices = (a.astype(np.int32) for a in (G0.offsets, G0.indices))
    graph = edgegrad.make_csc_hg(offsets, indices, 2, 3, types, G0.edge_types)
    assert graph.src_node_types.ptr == types.ctypes.data
    assert graph.n_node_types == 2


def test_numbers_of_sources() -> None:
    offsets, indices = np.array([0, 1]), np.array([0])
    assert edgegrad.make_csc(offsets, indices).n_src_nodes == 1
    assert edgegrad.make_csc(offsets, indices, n_src_nodes=9).n_src_nodes == 9
    assert edgegrad.make_csc(offsets, indices, n_src_nodes=np.int32(9)).n_src_nodes == 9
    fewer = edgegrad.make_bipartite_csc(np.array([0, 1, 1, 1]), indices, 1)
    assert (fewer.n_src_nodes, fewer.n_dst_nodes) == (1, 3)
    wide = edgegrad.make_bipartite_csc(offsets, np.array([2**62 - 1]), 2**62)
    assert wide.n_src_nodes == 2**62
    with pytest.raises(ValueError, match="`n_src_nodes` has the value 4611686018427387904"):
        wide.build_reverse()


@pytest.mark.parametrize("kind", ["csc", "bipartite_csc"])
def test_empty_graphs(device: Any, kind: str, IdxT: Any) -> None:
    for n_dst in (0, 3):
        ends = [device.array(np.zeros(n, IdxT)) for n in (n_dst + 1, 0)]
        if kind == "csc":
            graph = edgegrad.make_csc(*ends)
        else:
            graph = edgegrad.make_bipartite_csc(*ends, 0, device.array(np.zeros(0, IdxT)))
        assert (graph.n_dst_nodes, graph.n_indices, graph.max_in_degree) == (n_dst, 0, 0)
        graph.build_reverse()


def test_read_only_arrays_are_enough() -> None:
    arrays = [a.astype(np.int32) for a in (G0.offsets, G0.indices, G0.edge_types)]
    for a in arrays:
        a.setflags(write=False)
    graph = edgegrad.make_csc_hg(arrays[0], arrays[1], 0, 3, None, arrays[2])
    assert graph.indices.ptr == arrays[1].ctypes.data
    graph.build_reverse()


def test_no_cuda_call_on_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    from edgegrad.backends import cuda

    def forbidden() -> Any:
        raise AssertionError("a host graph asked for CuPy")

    monkeypatch.setattr(cuda, "cupy", forbidden)
    for name in graphs.NAMES:
        data = graphs.make(name)
        graph = data.make(_Host())
        graph.build_reverse()
        assert graph.max_in_degree == np.diff(data.offsets).max(initial=0)


class _Host:
    def array(self, a: Any) -> Any:
        return np.array(a)


def test_opaque() -> None:
    """Sizes and arrays cannot be exchanged afterwards."""
    graph = make("csc_hg", np.asarray)
    for name in ("n_src_nodes", "n_indices", "offsets", "indices", "edge_types", "has_reverse"):
        with pytest.raises(AttributeError):
            setattr(graph, name, 0)
