"""Graphs as objects: identity, pickling, moving, sharing between threads, what they keep alive."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import devices
import edgegrad
import graphs
import simt
from edgegrad.backends import cuda
from edgegrad.graph import build
from edgegrad.graph.types import ARRAYS, COUNTS, Graph


def numpy(a: Any) -> Any:
    if a is None:
        return None
    return np.asarray(a) if a.device == "cpu" else cuda.cupy().asnumpy(cuda.cupy().asarray(a))


def same(a: Any, b: Any) -> None:
    assert type(a) is type(b)
    for name in COUNTS:
        assert getattr(a, name) == getattr(b, name)
    for name in ARRAYS:
        left, right = numpy(getattr(a, name)), numpy(getattr(b, name))
        assert (left is None) == (right is None)
        if left is not None:
            assert left.dtype == right.dtype
            np.testing.assert_array_equal(left, right)


def every_kind(device: Any, IdxT: Any) -> list[Any]:
    made = [
        graphs.make(name).make(device, IdxT, kind)
        for name in ("power_law", "bipartite", "empty")
        for kind in ("csc", "csc_hg")
    ]
    types = device.array(np.array([1, 0], np.int32))
    ends = [device.array(np.array(a, IdxT)) for a in ([0, 1, 2], [1, 0])]
    made.append(edgegrad.make_csc_hg(*ends, 2, 2, types, types))
    return made


def test_equality_is_identity() -> None:
    a, b = (graphs.G0.make(devices.Host()) for _ in range(2))
    assert a == a
    assert a != b
    assert len({a, b, a}) == 2


def test_pickle(device: Any, IdxT: Any) -> None:
    for graph in every_kind(device, IdxT):
        graph.build_reverse()
        again = pickle.loads(pickle.dumps(graph))
        same(graph, again)
        assert again.device == graph.device
        assert not again.has_reverse, "caches are not pickled"
        assert again is not graph
        a, b = build.reverse(graph), build.reverse(again)
        np.testing.assert_array_equal(numpy(a.position), numpy(b.position))
        same(graph, copy.deepcopy(graph))


def test_pickles_hold_arrays_alone() -> None:
    graph = graphs.make("star_hub").make(devices.Host())
    size = len(pickle.dumps(graph))
    graph.build_reverse()
    build.type_groups(graph)
    assert len(pickle.dumps(graph)) == size
    assert size < graph.nbytes + 2000


def test_to(device: Any, IdxT: Any) -> None:
    for graph in every_kind(device, IdxT):
        assert graph.to(device.location) is graph
        on_host = graph.to("cpu")
        same(graph, on_host)
        assert on_host.device == "cpu"
        if device.location == "cpu":
            continue
        assert graph.to("cuda") is graph
        back = on_host.to("cuda")
        assert back.device == "cuda:0"
        same(back, on_host)


BAD_DEVICES = ["gpu", "cud", "cpu:0", "", "cuda:", "cuda:x", "cuda:-1", "cuda:0 ", 3, None]


@pytest.mark.parametrize("bad", BAD_DEVICES, ids=repr)
def test_to_nowhere(bad: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    simt.install(monkeypatch)
    graph = graphs.G0.make(devices.Host())
    with pytest.raises(ValueError, match=f"^to: `device` is {bad!r}, expected 'cpu', ") as caught:
        graph.to(bad)
    assert isinstance(caught.value, edgegrad.ArgumentError)


def test_to_without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> Any:
        raise edgegrad.BackendError("CuPy cannot be imported")

    monkeypatch.setattr(cuda, "cupy", missing)
    with pytest.raises(edgegrad.BackendError, match="CuPy"):
        graphs.G0.make(devices.Host()).to("cuda")


def test_a_cache_is_built_once(device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """By as many threads at once as may ask for it."""
    names = ("reverse", "type_groups") if device.location == "cpu" else ("reverse",)
    side = "host" if device.location == "cpu" else "cuda"
    for name in names:
        graph = graphs.make("power_law").make(device)
        inner, built, go = getattr(build, f"_{side}_{name}"), [], threading.Barrier(8)

        def counted(*args: Any, inner: Any = inner, built: list[Any] = built) -> Any:
            built.append(threading.get_ident())
            threading.Event().wait(0.02)  # time for the others to come
            return inner(*args)

        def ask(_: int, name: str = name, graph: Any = graph, go: Any = go) -> Any:
            go.wait()
            return getattr(build, name)(graph)

        monkeypatch.setattr(build, f"_{side}_{name}", counted)
        with ThreadPoolExecutor(8) as pool:
            results = list(pool.map(ask, range(8)))
        assert len(built) == 1
        assert all(r is results[0] for r in results)


def test_caches_may_need_each_other() -> None:
    graph = graphs.G0.make(devices.Host())
    outer = graph.cached("outer", lambda: (graph.cached("inner", lambda: 1), 2))
    assert outer == (1, 2)


def test_a_build_that_fails_is_tried_again() -> None:
    graph = graphs.G0.make(devices.Host())

    def fails() -> int:
        raise MemoryError

    with pytest.raises(MemoryError):
        graph.cached("thing", fails)
    assert graph.cached("thing", lambda: 7) == 7


def test_one_graph_in_many_threads() -> None:
    data = graphs.make("power_law")
    graph, rng = data.make(devices.Host()), np.random.default_rng(0)
    x = rng.standard_normal((data.n_src, 5))
    expected = np.empty((data.n_dst, 25))
    edgegrad.operators.agg_hg_basis_n2n_post_fwd(expected, x, None, data.make(devices.Host()))

    def run(_: int) -> bool:
        out = np.full_like(expected, np.nan)
        edgegrad.operators.agg_hg_basis_n2n_post_fwd(out, x, None, graph)
        grad = np.full_like(x, np.nan)
        edgegrad.operators.agg_hg_basis_n2n_post_bwd(grad, None, out, x, None, graph)
        return out.tobytes() == expected.tobytes() and not np.isnan(grad).any()

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(run, range(60)))


def test_owners_stay_alive_as_long_as_the_graph() -> None:
    offsets, indices = (a.astype(np.int32) for a in (graphs.G0.offsets, graphs.G0.indices))
    kept = [weakref.ref(a) for a in (offsets, indices)]
    graph = edgegrad.make_csc(offsets, indices)
    taken = np.asarray(graph.indices)
    del offsets, indices
    gc.collect()
    assert all(ref() is not None for ref in kept)
    del graph
    gc.collect()
    assert kept[0]() is None
    assert kept[1]() is not None, "an exported array needs its memory too"
    np.testing.assert_array_equal(taken, graphs.G0.indices)
    del taken
    gc.collect()
    assert kept[1]() is None


def test_graphs_with_caches_are_collected() -> None:
    graph = graphs.make("power_law").make(devices.Host())
    graph.build_reverse()
    gone = weakref.ref(graph)
    del graph
    gc.collect()
    assert gone() is None


def test_arrays_are_taken_by_other_libraries() -> None:
    graph = graphs.G0.make(devices.Host())
    for a in (graph.offsets, graph.indices, graph.edge_types, graph.map_csc_to_coo):
        assert np.from_dlpack(a).ctypes.data == a.ptr
        assert np.asarray(a).ctypes.data == a.ptr


def test_a_twin_shares_all_but_identity_and_attachments() -> None:
    graph = graphs.G0.make(devices.Host())
    seen: list[Any] = []
    Graph.attachments.append(seen.append)
    try:
        made = graphs.G0.make(devices.Host())
        twin = made.twin()
    finally:
        Graph.attachments.remove(seen.append)
    assert seen == [made], "a twin is not attached to"
    made.attach("note", 7)
    assert made.note == 7
    assert not hasattr(twin, "note")
    assert (type(twin), twin.sizes, twin.device) == (type(made), made.sizes, made.device)
    twin.build_reverse()
    assert made.has_reverse
    assert not graph.has_reverse
    assert twin.offsets.ptr == made.offsets.ptr
