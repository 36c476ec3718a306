"""sparse_matmul against SciPy's own product."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

import edgegrad

FORMATS = ("csr", "csc", "coo", "lil", "dok", "bsr", "dia")


def _matrix(kind: type, m: int = 7, n: int = 5, dtype: type = np.float64) -> scipy.sparse.csr_array:
    rng = np.random.default_rng(0)
    dense = np.where(rng.random((m, n)) < 0.4, rng.standard_normal((m, n)), 0.0)
    return kind(dense.astype(dtype))


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("kind", [scipy.sparse.csr_array, scipy.sparse.csr_matrix])
@pytest.mark.parametrize("shape", [(7, 5), (5, 7), (6, 6), (0, 3), (3, 0)])
def test_every_format(form: str, kind: type, shape: tuple[int, int]) -> None:
    a = _matrix(kind, *shape)
    x = np.random.default_rng(1).standard_normal((shape[1], 4))
    if form == "bsr" and 0 in shape:
        pytest.skip("SciPy has no empty bsr")
    a = a.asformat(form)
    np.testing.assert_allclose(edgegrad.sparse_matmul(a, x), a @ x, 1e-13, 1e-14)
    np.testing.assert_allclose(edgegrad.sparse_matmul(a, x[:, 0]), a @ x[:, 0], 1e-13, 1e-14)


def test_duplicates_count_each() -> None:
    ends = (np.array([0, 0, 1]), np.array([1, 1, 0]))
    a = scipy.sparse.coo_array((np.array([1.0, 2.0, 5.0]), ends), shape=(2, 2))
    x = np.array([10.0, 100.0])
    np.testing.assert_array_equal(edgegrad.sparse_matmul(a, x), [300.0, 50.0])


@pytest.mark.parametrize("left", [np.float32, np.float64, np.int32])
@pytest.mark.parametrize("right", [np.float32, np.float64, np.float16])
def test_dtype_is_scipys(left: type, right: type) -> None:
    a = _matrix(scipy.sparse.csr_array, dtype=left)
    x = np.ones((5, 2), right)
    got = edgegrad.sparse_matmul(a, x)
    assert got.dtype == np.promote_types(left, right)
    np.testing.assert_allclose(got, a.astype(np.float64) @ x.astype(np.float64), 1e-6, 1e-6)


def test_strided_operand() -> None:
    a = _matrix(scipy.sparse.csr_array)
    x = np.arange(40.0).reshape(4, 10)[:, ::2].T
    np.testing.assert_allclose(edgegrad.sparse_matmul(a, x), a @ x, 1e-13)


@pytest.mark.parametrize(
    ("x", "error", "text"),
    [
        (np.ones((4, 2)), ValueError, r"`x` has shape \(4, 2\), expected \(5,\) or \(5, k\)"),
        (np.ones((5, 2, 2)), ValueError, "`x` has shape"),
        (np.ones(5, complex), TypeError, "`x` has dtype complex128 beside a matrix of float64"),
        ([1.0] * 5, TypeError, "`x` has type list, expected a numpy array"),
    ],
)
def test_wrong_operand(x: object, error: type, text: str) -> None:
    with pytest.raises(error, match=text):
        edgegrad.sparse_matmul(_matrix(scipy.sparse.csr_array), x)


def test_no_matrix() -> None:
    with pytest.raises(TypeError, match=r"`matrix` has type ndarray, expected a scipy\.sparse"):
        edgegrad.sparse_matmul(np.ones((2, 2)), np.ones(2))
