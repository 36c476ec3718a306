"""`from_scipy` and `to_scipy`: destinations x sources, so that ``A @ x`` aggregates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

import edgegrad
import graphs
from edgegrad.interop import view


def _matrix(n_dst: int, n_src: int, n: int = 40, seed: int = 0) -> scipy.sparse.coo_array:
    """With duplicates and stored zeros."""
    rng = np.random.default_rng(seed)
    ends = (rng.integers(0, n_dst, n), rng.integers(0, n_src, n))
    values = rng.standard_normal(n)
    values[::5] = 0
    return scipy.sparse.coo_array((values, ends), shape=(n_dst, n_src))


def _converted(coo: Any, form: str) -> Any:
    """In another format, no duplicate summed."""
    if form == "coo":
        return coo
    rows, columns = coo.coords
    order = np.argsort(rows if form == "csr" else columns, kind="stable")
    along, across = (rows, columns) if form == "csr" else (columns, rows)
    n = coo.shape[0] if form == "csr" else coo.shape[1]
    offsets = np.concatenate([[0], np.cumsum(np.bincount(along, minlength=n))])
    cls = scipy.sparse.csr_array if form == "csr" else scipy.sparse.csc_array
    parts = (coo.data[order], across[order].astype(np.int32), offsets.astype(np.int32))
    return cls(parts, shape=coo.shape)


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
@pytest.mark.parametrize("shape", [(7, 7), (4, 9), (9, 4), (3, 0), (0, 3), (0, 0)])
def test_round_trip(form: str, shape: tuple[int, int]) -> None:
    coo = _matrix(max(shape[0], 1), max(shape[1], 1), 40 if min(shape) else 0)
    coo = scipy.sparse.coo_array((coo.data, coo.coords), shape=shape)
    matrix = _converted(coo, form)
    graph, values = edgegrad.from_scipy(matrix)
    assert (graph.n_dst_nodes, graph.n_src_nodes) == shape
    assert graph.n_indices == coo.nnz  # duplicates apart, zeros kept
    assert ("bipartite" in graph.kind) == (shape[0] != shape[1])
    back = edgegrad.to_scipy(graph, values)
    assert isinstance(back, scipy.sparse.csr_array)
    assert back.nnz == coo.nnz
    np.testing.assert_array_equal(back.toarray(), coo.toarray())
    x = np.random.default_rng(1).standard_normal((shape[1], 3))
    np.testing.assert_allclose(back @ x, coo @ x)
    ones = edgegrad.to_scipy(graph)
    np.testing.assert_array_equal(ones.data, 1.0)
    back.sum_duplicates()  # as max() and others of SciPy do on their own, in place
    assert graph.n_indices == coo.nnz == np.asarray(graph.offsets)[-1]


def test_csr_is_taken_as_it_is() -> None:
    matrix = _converted(_matrix(6, 6), "csr")
    graph, values = edgegrad.from_scipy(matrix)
    assert graph.offsets.ptr == view("", "", matrix.indptr).ptr
    assert graph.indices.ptr == view("", "", matrix.indices).ptr
    assert values is matrix.data
    assert graph.map_csc_to_coo is None
    assert (graph.kind, graph.index_dtype) == ("csc", "int32")


@pytest.mark.parametrize("form", ["csc", "coo"])
def test_values_follow_the_map(form: str) -> None:
    matrix = _converted(_matrix(6, 8), form)
    graph, values = edgegrad.from_scipy(matrix)
    np.testing.assert_array_equal(values, matrix.tocoo().data[np.asarray(graph.map_csc_to_coo)])


@pytest.mark.parametrize("form", ["lil", "dok", "bsr", "dia"])
def test_other_formats(form: str) -> None:
    matrix = scipy.sparse.eye_array(5, format="csr")
    matrix.data[...] = np.arange(1, 6)
    graph, values = edgegrad.from_scipy(matrix.asformat(form))
    np.testing.assert_array_equal(edgegrad.to_scipy(graph, values).toarray(), matrix.toarray())


def test_old_matrices_and_wide_ids() -> None:
    matrix = scipy.sparse.csr_matrix(_matrix(5, 5).toarray())
    matrix.indptr, matrix.indices = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64)
    graph, values = edgegrad.from_scipy(matrix)
    assert graph.index_dtype == "int64"
    np.testing.assert_array_equal(edgegrad.to_scipy(graph, values).toarray(), matrix.toarray())


def test_bipartite_by_wish() -> None:
    square, wide, tall = (_matrix(*shape) for shape in ((5, 5), (4, 9), (9, 4)))
    for form in ("csr", "coo"):
        kinds = [edgegrad.from_scipy(_converted(square, form), bipartite=True)[0].kind]
        kinds.append(edgegrad.from_scipy(_converted(square, form))[0].kind)
        kinds.append(edgegrad.from_scipy(_converted(wide, form), bipartite=False)[0].kind)
        assert kinds == ["bipartite_csc", "csc", "csc"]
        with pytest.raises(ValueError, match="`n_src_nodes` has the value 4, expected at least"):
            edgegrad.from_scipy(_converted(tall, form), bipartite=False)


def test_every_named_graph(device: Any, IdxT: Any) -> None:
    for name in graphs.NAMES:
        data = graphs.make(name)
        matrix = edgegrad.to_scipy(data.make(device, IdxT))
        expected = data.adjacency()
        assert matrix.shape == expected.shape
        np.testing.assert_array_equal(matrix.indptr, expected.indptr)
        np.testing.assert_array_equal(matrix.indices, expected.indices)


def test_bad_arguments() -> None:
    graph = graphs.make("chain").make(_Host())
    for bad in (np.eye(3), [[1]], None, "csr", 3, graph):
        message = "^from_scipy: `matrix` has type .*, expected a scipy.sparse matrix"
        with pytest.raises(TypeError, match=message) as caught:
            edgegrad.from_scipy(bad)
        assert isinstance(caught.value, edgegrad.ArgumentError)
    with pytest.raises(ValueError, match=r"`matrix` has shape \(3,\), expected two axes"):
        edgegrad.from_scipy(scipy.sparse.coo_array(np.ones(3)))
    with pytest.raises(TypeError, match="^to_scipy: `graph` has type ndarray, expected a graph"):
        edgegrad.to_scipy(np.eye(3))
    for values in (np.ones(15), np.ones((16, 1)), 1.0):
        with pytest.raises(ValueError, match=r"`values` has shape .*, expected \(16,\)"):
            edgegrad.to_scipy(graph, values)


class _Host:
    def array(self, a: Any) -> Any:
        return np.array(a)
