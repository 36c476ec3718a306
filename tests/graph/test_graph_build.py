"""What is derived from graphs, against slow loops; host and device arrays are equal."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphs
from edgegrad.backends import cuda
from edgegrad.graph import build
from graphs import GraphData

ALL = (*graphs.NAMES, "g0")


def data_of(name: str) -> GraphData:
    return graphs.G0 if name == "g0" else graphs.make(name)


def numpy(a: Any) -> np.ndarray:
    return np.asarray(a) if a.device == "cpu" else cuda.cupy().asnumpy(cuda.cupy().asarray(a))


def _check(got: Any, expected: dict[str, list[int]], ids: Any, wide: tuple[str, ...] = ()) -> None:
    for name, values in expected.items():
        a = getattr(got, name)
        assert a.dtype == ("int64" if name in wide else np.dtype(ids).name), name
        np.testing.assert_array_equal(numpy(a), np.array(values, np.int64), err_msg=name)


@pytest.mark.parametrize("name", ALL)
def test_reverse(device: Any, name: str, IdxT: Any) -> None:
    data = data_of(name)
    graph = data.make(device, IdxT)
    offsets, dst, position = [0], [], []
    destination = data.destinations
    for u in range(data.n_src):
        for e in range(data.n_edges):
            if data.indices[e] == u:
                dst.append(int(destination[e]))
                position.append(e)
        offsets.append(len(dst))
    assert not graph.has_reverse
    graph.build_reverse()
    assert graph.has_reverse
    rev = build.reverse(graph)
    assert rev is build.reverse(graph)
    _check(rev, {"offsets": offsets, "dst": dst, "position": position}, IdxT)


@pytest.mark.parametrize("name", ALL)
def test_type_groups(device: Any, name: str, IdxT: Any) -> None:
    data = data_of(name)
    graph = data.make(device, IdxT)
    offsets, location, order = [0], [], []
    degree = [0] * data.n_edges
    for v in range(data.n_dst):
        for t in range(data.n_types):
            inside = range(data.offsets[v], data.offsets[v + 1])
            edges = [e for e in inside if data.edge_types[e] == t]
            if not edges:
                continue
            order += edges
            offsets.append(len(order))
            location.append(v * data.n_types + t)
            for e in edges:
                degree[e] = len(edges)
    groups = build.type_groups(graph)
    assert groups is build.type_groups(graph)
    expected = {"offsets": offsets, "location": location, "order": order, "type_degree": degree}
    _check(groups, expected, IdxT, wide=("location",))


@pytest.mark.parametrize("limit", [1, 3, 8, 10_000])
@pytest.mark.parametrize("name", ALL)
def test_pieces(device: Any, name: str, limit: int, IdxT: Any) -> None:
    data = data_of(name)
    graph = data.make(device, IdxT)
    row, begin, end, first = [], [], [], []
    for v in range(data.n_dst):
        a, b = data.offsets[v], data.offsets[v + 1]
        if b - a <= limit:
            continue
        first.append(len(row))
        for e in range(a, b, limit):
            row.append(v)
            begin.append(e)
            end.append(min(e + limit, b))
    first.append(len(row))
    cut = build.pieces(graph, "rows", graph.offsets, limit)
    assert cut.limit == limit
    assert cut is build.pieces(graph, "rows", graph.offsets, limit)
    names = ("row", "begin", "end", "first")
    _check(cut, {"row": row, "begin": begin, "end": end, "first": first}, IdxT, wide=names)


def test_pieces_of_reverse_and_groups(device: Any) -> None:
    """Every kind of row is cut by its own offsets and kept apart."""
    graph = graphs.make("star_hub").make(device)
    rev, groups = build.reverse(graph), build.type_groups(graph)
    cuts = [
        build.pieces(graph, name, offsets, 16)
        for name, offsets in (
            ("rows", graph.offsets),
            ("reverse", rev.offsets),
            ("groups", groups.offsets),
        )
    ]
    assert len({len(c.row) for c in cuts}) == 3
    for cut, offsets in zip(cuts, (graph.offsets, rev.offsets, groups.offsets), strict=True):
        degrees = np.diff(numpy(offsets))
        assert len(cut.row) == sum(-(-d // 16) for d in degrees if d > 16)
        assert int((numpy(cut.end) - numpy(cut.begin)).sum()) == degrees[degrees > 16].sum()


@pytest.mark.parametrize("name", ALL)
def test_max_in_degree(device: Any, name: str, IdxT: Any) -> None:
    data = data_of(name)
    degrees = np.diff(data.offsets)
    assert data.make(device, IdxT, "csc").max_in_degree == degrees.max(initial=0)


def test_what_is_built_is_on_the_device_of_the_graph(device: Any) -> None:
    graph = graphs.make("star_hub").make(device)
    built = (
        build.reverse(graph),
        build.type_groups(graph),
        build.pieces(graph, "rows", graph.offsets, 8),
    )
    for struct in built:
        views = [a for a in vars(struct).values() if hasattr(a, "device")]
        assert len(views) >= 3
        assert {a.device for a in views} == {device.location}


def test_random_graphs_with_absent_types() -> None:
    """Many small graphs on the host: types that nothing has, repeated sources, idle ends."""
    rng = np.random.default_rng(9)
    for seed in range(60):
        n_src, n_dst, n = rng.integers(1, 6), rng.integers(1, 6), rng.integers(0, 25)
        ends = rng.integers(0, n_src, n), rng.integers(0, n_dst, n)
        data = graphs.from_edges(*ends, int(n_src), int(n_dst), 7, bipartite=True, seed=seed)
        graph = data.make(_Host())
        rev, groups = build.reverse(graph), build.type_groups(graph)
        position = np.argsort(data.indices, kind="stable")
        np.testing.assert_array_equal(rev.position, position)
        np.testing.assert_array_equal(rev.dst, data.destinations[position])
        key = data.destinations * 7 + data.edge_types
        np.testing.assert_array_equal(groups.order, np.argsort(key, kind="stable"))
        unique, inverse, counts = np.unique(key, return_inverse=True, return_counts=True)
        np.testing.assert_array_equal(groups.location, unique)
        np.testing.assert_array_equal(groups.type_degree, counts[inverse] if n else [])


class _Host:
    def array(self, a: Any) -> Any:
        return np.array(a)
