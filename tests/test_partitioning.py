"""Parts of a graph and the batches they make."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import edgegrad
from edgegrad.errors import BackendError


def _random(n: int = 60, n_edges: int = 400, seed: int = 0, **types: Any) -> Any:
    rng = np.random.default_rng(seed)
    src, dst = rng.integers(0, n, (2, n_edges)).astype(np.int32)
    return edgegrad.from_coo(src, dst, n, **types)


def _cut_edges(graph: Any, parts: np.ndarray) -> int:
    dst = np.repeat(np.arange(graph.n_dst_nodes), np.diff(np.asarray(graph.offsets)))
    return int((parts[dst] != parts[np.asarray(graph.indices)]).sum())


def _ring_of_cliques(n: int, size: int) -> Any:
    """Cliques whose nodes are far apart in number, joined in a ring."""
    node = np.arange(n * size).reshape(size, n).T
    inside = [(a, b) for c in node for a in c for b in c if a != b]
    ring = [(node[i, 0], node[(i + 1) % n, 0]) for i in range(n)]
    src, dst = np.array(inside + ring, np.int32).T.copy()
    return edgegrad.from_coo(src, dst, n * size)


def test_metis_finds_the_cliques() -> None:
    pytest.importorskip("pymetis")
    graph = _ring_of_cliques(6, 8)
    parts = edgegrad.partition(graph, 6)
    assert parts.dtype == np.int64
    assert np.bincount(parts).tolist() == [8] * 6
    assert _cut_edges(graph, parts) == 6
    assert (edgegrad.partition(graph, 6) == parts).all()
    assert not edgegrad.partition(graph, 1).any()


def test_contiguous_and_random() -> None:
    graph = _random(10)
    assert edgegrad.partition(graph, 3, "contiguous").tolist() == [0, 0, 0, 0, 1, 1, 1, 2, 2, 2]
    parts = [edgegrad.partition(graph, 3, "random", seed) for seed in (1, 1, 2)]
    assert (parts[0] == parts[1]).all()
    assert (parts[0] != parts[2]).any()
    assert sorted(np.bincount(parts[2])) == [3, 3, 4]


def test_metis_is_asked_for_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pymetis", None)
    with pytest.raises(BackendError, match=r"needs pymetis: pip install 'edgegrad\[partition\]'"):
        edgegrad.partition(_random(), 2)


@pytest.mark.parametrize("neighbours", ["fresh", "store"])
@pytest.mark.parametrize("typed", [False, True])
def test_batches_have_every_edge_once(neighbours: str, typed: bool) -> None:
    types = {"edge_types": np.arange(400, dtype=np.int32) % 3, "n_edge_types": 3} if typed else {}
    graph = _random(**types)
    offsets, indices = np.asarray(graph.offsets), np.asarray(graph.indices)
    dst = np.repeat(np.arange(60), np.diff(offsets))
    found = edgegrad.batches(graph, edgegrad.partition(graph, 4, "random"), neighbours=neighbours)
    assert sorted(np.concatenate([b.own for b in found])) == list(range(60))
    assert sorted(np.concatenate([b.positions for b in found])) == list(range(400))
    for b in found:
        assert b.graph.kind == ("bipartite_csc_hg" if typed else "bipartite_csc")
        rows = np.concatenate([b.own, b.neighbours])
        local = np.asarray(b.graph.indices)
        to = np.repeat(b.own, np.diff(np.asarray(b.graph.offsets)))
        assert (rows[local] == indices[b.positions]).all()
        assert (to == dst[b.positions]).all()
        own = local < len(b.own)
        live = np.isin(rows[local], b.own) if neighbours == "fresh" else rows[local] == to
        assert (own == live).all()
        assert (np.diff(b.neighbours) > 0).all()
        if typed:
            whole = np.asarray(graph.edge_types)
            assert (np.asarray(b.graph.edge_types) == whole[b.positions]).all()


def test_destinations_may_be_repeated() -> None:
    graph = edgegrad.from_coo(*np.array([[0, 1, 2, 3], [1, 2, 1, 0]], np.int32), 4)
    (batch,) = edgegrad.batches(graph, [np.array([2, 1, 2])])
    assert batch.own.tolist() == [2, 1, 2]
    assert batch.neighbours.tolist() == [0]
    assert np.asarray(batch.graph.offsets).tolist() == [0, 1, 3, 4]
    assert np.asarray(batch.graph.indices).tolist() == [1, 3, 0, 1]


def test_what_is_refused() -> None:
    graph = _random()
    bipartite = edgegrad.make_bipartite_csc(np.array([0]), np.empty(0, int), 3)
    for error, text, call in (
        (TypeError, "partition: `graph` has type", lambda: edgegrad.partition(bipartite, 2)),
        (ValueError, "partition: `n_parts` has the value 0", lambda: edgegrad.partition(graph, 0)),
        (ValueError, "partition: `method` is 'x'", lambda: edgegrad.partition(graph, 2, "x")),
        (TypeError, "batches: `graph` has type int", lambda: edgegrad.batches(3, [])),
        (TypeError, "batches: `parts` has dtype fl", lambda: edgegrad.batches(graph, np.ones(60))),
        (ValueError, "batches: `parts` has shape", lambda: edgegrad.batches(graph, np.arange(3))),
        (
            IndexError,
            r"batches: `parts\[1\]\[2\]` has the value 60, expected a number in \[0, 60\)",
            lambda: edgegrad.batches(graph, [np.arange(3), np.array([1, 2, 60])]),
        ),
        (
            ValueError,
            "batches: `neighbours` is 'old'",
            lambda: edgegrad.batches(graph, np.zeros(60, int), neighbours="old"),
        ),
    ):
        with pytest.raises(error, match=f"^{text}"):
            call()


def test_nothing_to_cut() -> None:
    empty = edgegrad.make_csc(np.zeros(1, int), np.empty(0, int))
    for method in ("contiguous", "random"):
        assert edgegrad.partition(empty, 3, method).shape == (0,)
    assert edgegrad.batches(empty, np.empty(0, int)) == []
    lonely = edgegrad.make_csc(np.zeros(3, int), np.empty(0, int))
    (batch,) = edgegrad.batches(lonely, np.zeros(2, int))
    assert batch.graph.n_indices == 0
    assert batch.own.tolist() == [0, 1]
