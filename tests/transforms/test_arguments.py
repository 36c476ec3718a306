"""Signatures, variables, backends, and that nothing heavy is imported before it is needed."""

from __future__ import annotations

import importlib.util
import inspect
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import edgegrad
from edgegrad.transforms.signature import Signature

A = np.array([1.0, -2.0, 0.5])
autograd = pytest.mark.skipif(
    importlib.util.find_spec("autograd") is None, reason="autograd is not installed"
)


def _product(a: Any, b: Any, *, k: Any = 1.0) -> Any:
    return (a * b * k).sum()


@pytest.mark.parametrize(
    "given",
    ["(a,b,+,k) ~> (loss)", " ( a , b,+ ,k )~>( loss ) ", [["a", "b", "+", "k"], ["loss"]]],
)
def test_signatures(given: Any) -> None:
    known = Signature.of("gradient", _product, given)
    assert str(known.parameters) == "(a, b, *, k)"
    assert known.outputs == ("loss",)


@autograd
def test_names_of_a_signature_are_the_result_s() -> None:
    found = edgegrad.gradient(lambda *xs: (xs[0] * xs[1]).sum(), "v", signature="(u,v)~>(s)")
    np.testing.assert_array_equal(found(v=A, u=2 * A), 2 * A)
    with pytest.raises(TypeError, match="gradient: missing a required argument: 'v'"):
        found(A)


@autograd
def test_the_result_has_the_function_s_signature() -> None:
    found = edgegrad.gradient(_product)
    assert inspect.signature(found) == inspect.signature(_product)
    assert found.__name__ == "gradient_of__product"
    assert str(inspect.signature(edgegrad.hvp(_product))) == "(a: 'Any', b: 'Any', *, k: 'Any' = 1.0, vector) -> 'Any'"  # fmt: skip  # noqa: E501
    rest = edgegrad.gradient(lambda *xs: (xs[0] * xs[1]).sum(), (1, 0))
    np.testing.assert_array_equal(rest(A, 3 * A)[0], A)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"signature": "a, b"}, "`signature` has 'a, b', expected"),
        ({"signature": "(a,a)~>(s)"}, "`signature` has 'a' among its names, expected"),
        ({"signature": [["a"], "s", 1]}, "`signature` has .*, expected"),
        ({"signature": "(a)~>(s,t)"}, "`signature` has 2 outputs, expected two or more with extra"),
        ({"variables": "c"}, "`variables` has 'c', expected names or indices .*, of a, b, k"),
        ({"variables": 7}, "`variables` has 7, expected"),
        ({"variables": True}, "`variables` has True, expected"),
        ({"variables": ("a", 0)}, "`variables` has 'a' twice, expected .* a, b, k"),
        ({"variables": ()}, "`variables` has no entry, expected"),
        ({"backend": "tensorflow"}, "`backend` is 'tensorflow', expected 'auto' or"),
    ],
)
def test_bad_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"gradient: {message}"):
        edgegrad.gradient(_product, **options)


def test_what_is_no_function() -> None:
    with pytest.raises(TypeError, match="gradient: `function` has type int, expected a callable"):
        edgegrad.gradient(3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.arange(3), "`a` has dtype int64, expected float16 or"),
        (np.array([True]), "`a` has dtype bool, expected"),
        (np.array([1j]), "`a` has dtype complex128, expected"),
        ({"x": "text"}, "`a` has type str, expected an array of real floating numbers"),
        (3, "`a` has type int, expected"),
    ],
)
def test_bad_variables(given: Any, message: str) -> None:
    with pytest.raises(TypeError, match=f"gradient: {message}"):
        edgegrad.gradient(_product)(given, A)


@autograd
def test_extra_outputs_that_are_not_there() -> None:
    with pytest.raises(ValueError, match="`function` has .*, expected a list or tuple of two"):
        edgegrad.gradient(_product, extra_outputs=True)(A, A)


def test_frameworks_do_not_mix_by_themselves() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    t, j = torch.ones(3), jax.numpy.ones(3)
    with pytest.raises(TypeError, match="`backend` has arrays of jax and torch together"):
        edgegrad.gradient(_product)(t, j)
    chosen = edgegrad.gradient(_product, backend="torch")(t, j)
    np.testing.assert_array_equal(chosen, np.ones(3))
    moved = edgegrad.gradient(_product)(np.ones(3, np.float32), t)
    assert isinstance(moved, np.ndarray)
    for options in ({}, {"backend": "jax"}):
        with pytest.raises(TypeError, match="`automove` has the value False beside arrays of"):
            edgegrad.gradient(_product, automove=False, **options)(np.ones(3, np.float32), t)


def test_missing_engines(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "autograd" else real(name)
    )
    command = r"gradient: the numpy backend needs autograd: pip install 'edgegrad\[autograd\]'"
    with pytest.raises(ImportError, match=command):
        edgegrad.gradient(_product)(A, A)
    with pytest.warns(RuntimeWarning, match="gradient: autograd is not installed, torch diff"):
        found = edgegrad.gradient(_product, fallback=("torch", "jax"))(A, 2 * A)
    np.testing.assert_array_equal(found, 2 * A)
    assert isinstance(found, np.ndarray)


def test_import_is_free_of_frameworks() -> None:
    code = (
        "import sys, edgegrad, edgegrad.functional; "
        "print(sorted({'torch', 'jax', 'autograd', 'cupy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_functional_names_arrays_of_no_framework() -> None:
    import edgegrad.functional as functional

    graph = edgegrad.make_csc(np.array([0, 1]), np.array([0]))
    with pytest.raises(TypeError, match="agg_simple_n2n: `input_embedding` has type list, exp"):
        functional.agg_simple_n2n([[1.0]], graph, "sum")
