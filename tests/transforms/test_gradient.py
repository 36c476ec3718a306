"""gradient, value_and_gradient, jacobian, hvp: the same under every engine."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import edgegrad
from devices import Host
from recipes.calls import PLAIN, G, W, X

NEEDS = {"numpy": "autograd", "torch": "torch", "jax": "jax"}


@pytest.fixture(params=list(NEEDS))
def backend(request: pytest.FixtureRequest) -> str:
    needed = NEEDS[request.param]
    pytest.importorskip(needed, reason=f"{needed} is not installed")
    return request.param


@pytest.fixture
def own(backend: str) -> Iterator[Any]:
    """Make an array of the backend's."""
    if backend == "torch":
        yield importlib.import_module("torch").from_numpy
    elif backend == "jax":
        jax = importlib.import_module("jax")
        with jax.enable_x64(True):
            yield jax.numpy.asarray
    else:
        yield np.array


def _cubes(x: Any, scale: Any = 2.0) -> Any:
    return (scale * x**3).sum()


A = np.array([1.0, -2.0, 0.5])


def test_value_gradient_jacobian_and_hvp(backend: str) -> None:
    options: Any = {"backend": backend}
    np.testing.assert_allclose(edgegrad.gradient(_cubes, **options)(A), 6 * A**2)
    value, slope = edgegrad.value_and_gradient(_cubes, **options)(A, scale=1.0)
    assert value == (A**3).sum()
    np.testing.assert_allclose(slope, 3 * A**2)
    v = np.array([1.0, 2.0, -1.0])
    np.testing.assert_allclose(edgegrad.hvp(_cubes, **options)(A, vector=v), 12 * A * v)
    rows = edgegrad.jacobian(lambda x: x[:2] ** 2, **options)(A)
    np.testing.assert_allclose(rows, np.diag(2 * A)[:2])
    assert edgegrad.jacobian(lambda x: x[:0] ** 2, **options)(A).shape == (0, 3)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_results_are_like_the_variable(backend: str, own: Any, dtype: Any) -> None:
    x = A.astype(dtype)
    found = edgegrad.gradient(_cubes, backend=backend)(x)
    assert isinstance(found, np.ndarray)
    assert (found.shape, found.dtype) == (x.shape, x.dtype)
    theirs = own(x)
    found = edgegrad.gradient(_cubes)(theirs)
    assert type(found) is type(theirs)
    assert (found.shape, found.dtype) == (theirs.shape, theirs.dtype)


def test_moving_does_not_narrow(backend: str) -> None:
    x = np.array([1 + 2.0**-40])
    np.testing.assert_array_equal(edgegrad.gradient(_cubes, backend=backend)(x), 6 * x * x)


def test_several_variables(backend: str) -> None:
    def function(a: Any, b: Any, *, k: Any) -> Any:
        return (a * b * k).sum()

    b, k = A + 1, A + 2
    for variables in (("k", "a"), ["k", 0]):
        found = edgegrad.gradient(function, variables, backend=backend)(A, b, k=k)
        assert isinstance(found, tuple)
        np.testing.assert_allclose(found[0], A * b)
        np.testing.assert_allclose(found[1], b * k)
    by_name = edgegrad.gradient(function, 1, backend=backend)(k=k, b=b, a=A)
    np.testing.assert_allclose(by_name, A * k)


def test_nested_variables_and_one_that_is_not_used(backend: str) -> None:
    class Pair(NamedTuple):
        left: Any
        right: Any

    given = {"w": [A, A + 1], "unused": A[:2], "pair": Pair(A, 2.0)}

    def function(p: Any) -> Any:
        return (p["w"][0] * p["w"][1]).sum() * p["pair"].right

    found = edgegrad.gradient(function, backend=backend)(given)
    assert list(found) == ["w", "unused", "pair"]
    assert isinstance(found["pair"], Pair)
    np.testing.assert_allclose(found["w"][0], 2 * (A + 1))
    np.testing.assert_array_equal(found["unused"], [0, 0])
    np.testing.assert_allclose(found["pair"].right, (A * (A + 1)).sum())
    np.testing.assert_array_equal(found["pair"].left, 0 * A)


def test_extra_outputs(backend: str, own: Any) -> None:
    def function(x: Any) -> Any:
        return [(x**2).sum(), x * 2, "as it is", {"n": [x]}]

    x = own(A)
    found = edgegrad.gradient(function, extra_outputs=True)(x)
    assert isinstance(found, list)
    assert found[2] == "as it is"
    for got, expected in ((found[0], 2 * A), (found[1], 2 * A), (found[3]["n"][0], A)):
        assert type(got) is type(x)
        np.testing.assert_allclose(got, expected)
    value, slope, *rest = edgegrad.value_and_gradient(function, extra_outputs=True)(x)
    np.testing.assert_allclose(value, (A**2).sum())
    np.testing.assert_allclose(slope, 2 * A)
    assert len(rest) == 3
    moved = edgegrad.gradient(function, extra_outputs=True, backend=backend)(A)
    assert isinstance(moved[1], np.ndarray)


def test_gradients_nest(backend: str, own: Any) -> None:
    inner = edgegrad.gradient(_cubes)
    found = edgegrad.gradient(lambda x: (inner(x) ** 2).sum())(own(A))
    np.testing.assert_allclose(found, 144 * A**3)
    value, again = edgegrad.gradient(lambda x: ((x**2).sum(), x), extra_outputs=True)(own(A))
    np.testing.assert_allclose(value, 2 * A)
    np.testing.assert_allclose(again, A)


def test_operators_follow_the_backend(backend: str) -> None:
    functional = importlib.import_module("edgegrad.functional")
    graph = PLAIN.make(Host())

    def loss(w: Any, x: Any, graph: Any) -> Any:
        xp = edgegrad.array_namespace(w, x)
        alpha = functional.edge_softmax(w, graph)
        return xp.tanh(functional.spmm(alpha, x, graph)).sum()

    both = (0, 1)
    found = edgegrad.gradient(loss, both, backend=backend)(W, X, graph)
    expected = edgegrad.gradient(loss, both, backend="numpy")(W, X, graph)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)
    assert edgegrad.check_gradient(loss, W, X, graph, order=2, backend=backend) < 1e-6

    def largest(x: Any) -> Any:
        return (functional.agg_simple_n2n(x, graph, "max") * x).sum()

    with pytest.raises(edgegrad.DerivativeError, match="agg_simple_n2n: there is no second"):
        edgegrad.hvp(largest, backend=backend)(X, vector=G)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x, r"`function` has a value of shape \(3,\), .*`jacobian`"),
        (lambda x: (x.sum(), x), "`function` has a result of type tuple, .*extra_outputs=True"),
        (lambda x: x.sum() > 0, "`function` has a value of dtype bool, expected a real floating"),
        (lambda x: None, "`function` has a value of dtype NoneType, expected a real floating"),
    ],
)
def test_values_that_have_no_gradient(backend: str, function: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"gradient: {message}"):
        edgegrad.gradient(function, backend=backend)(A)


def test_constants_have_gradients_of_zero(backend: str) -> None:
    np.testing.assert_array_equal(edgegrad.gradient(lambda x: 1.0, backend=backend)(A), 0 * A)


def test_check_gradient_finds_a_wrong_one(backend: str, own: Any) -> None:
    class Liar:
        """A value that changes with calls, as no derivative can know."""

        n = 0

    def function(x: Any) -> Any:
        Liar.n += 1
        return (x**2).sum() * (1 + Liar.n)

    with pytest.raises(AssertionError, match="check_gradient: the gradient in a random direction"):
        edgegrad.check_gradient(function, own(A))
    assert edgegrad.check_gradient(_cubes, own(A), order=2) < 1e-6


def test_ascend(backend: str, own: Any) -> None:
    seen: list[int] = []
    found = edgegrad.ascend(
        lambda p, c: -((p["x"] - c) ** 2).sum(),
        {"x": own(A)},
        own(A + 1),
        steps=60,
        step_size=lambda i: 0.25,
        callback=lambda i, x, value: seen.append(i),
    )
    np.testing.assert_allclose(found.x["x"], A + 1, atol=1e-9)
    assert seen == list(range(60))
    assert len(found.values) == 61
    assert found.values == sorted(found.values)
    assert abs(found.value) < 1e-15
