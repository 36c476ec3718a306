"""edgegrad.jax: jit, vmap, graphs as arguments, and what stands in for the native function."""

from __future__ import annotations

import gc
import importlib
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import edgegrad
from devices import Host
from frameworks import in_framework
from graphs import G0
from recipes.calls import PLAIN, SUM, WEIGHTED, G, W, X

GRAPH = PLAIN.make(Host())


@pytest.fixture
def jax() -> Any:
    for framework in in_framework("jax"):
        yield framework.engine


@pytest.fixture
def ops(jax: Any) -> Any:
    return importlib.import_module("edgegrad.jax")


@pytest.fixture(params=["native", "callback"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, jax: Any) -> str:
    """Both ways that a compiled call takes."""
    launch = importlib.import_module("edgegrad.jax.launch")
    if request.param == "callback":
        monkeypatch.setattr(launch, "registered", lambda run: False)
    jax.clear_caches()
    yield request.param
    jax.clear_caches()


def test_vmap(ops: Any, jax: Any, way: str) -> None:
    w, x = (jax.numpy.stack([jax.numpy.asarray(a), -2 * a]) for a in (W, X))

    def product(w: Any, x: Any) -> Any:
        return ops.spmm(w, x, GRAPH)

    expected = np.array(WEIGHTED)
    both = jax.vmap(product)(w, x)
    np.testing.assert_allclose(both, [expected, 4 * expected], rtol=1e-12)
    one = jax.jit(jax.vmap(product, (None, 0)))(w[0], x)
    np.testing.assert_allclose(one, [expected, -2 * expected], rtol=1e-12)
    nested = jax.vmap(jax.vmap(product, (None, 0)), (0, None))(w, x)
    np.testing.assert_allclose(nested[1], [-2 * expected, 4 * expected], rtol=1e-12)
    assert jax.vmap(product)(w[:0], x[:0]).shape == (0, 4, 2)


def test_vmap_of_gradients(ops: Any, jax: Any, way: str) -> None:
    def loss(x: Any, g: Any) -> Any:
        return (ops.mha_gat_n2n(x, None, a, graph, 1) * g).sum()

    a, graph = jax.numpy.array([1, -0.5, 0.25, 1]), G0.make(Host(), kind="csc")
    xs = jax.numpy.stack([jax.numpy.asarray(X), 0.5 * X])
    found = jax.vmap(jax.grad(loss), (0, None))(xs, G)
    for x, d in zip(xs, found, strict=True):
        np.testing.assert_allclose(jax.grad(loss)(x, G), d, rtol=1e-12, atol=1e-14)


def test_graph_is_an_argument_of_a_compiled_function(ops: Any, jax: Any, way: str) -> None:
    traced = []

    @jax.jit
    def product(w: Any, x: Any, graph: Any) -> Any:
        traced.append(graph)
        return ops.spmm(w, x, graph)

    backwards = edgegrad.make_csc_hg(
        G0.offsets, np.flip(G0.indices).copy(), 0, 1, None, np.zeros(6, np.int32), G0.edge_ids
    )
    same_sizes = edgegrad.make_csc_hg(
        G0.offsets, G0.indices, 0, 1, None, np.zeros(6, np.int32), G0.edge_ids
    )
    np.testing.assert_allclose(product(W, X, same_sizes), WEIGHTED, rtol=1e-12)
    other = product(W, X, backwards)
    assert len(traced) == 1
    np.testing.assert_allclose(other, ops.spmm(W, X, backwards), rtol=1e-12)
    assert not np.allclose(other, WEIGHTED)


def test_only_gradients_asked_for_are_computed(
    ops: Any, jax: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    launch = importlib.import_module("edgegrad.jax.derivatives")
    asked, real = [], launch.launch

    def seen(call: Any, *rest: Any) -> Any:
        asked.extend([call.asked] if call.half == "bwd" else [])
        return real(call, *rest)

    monkeypatch.setattr(launch, "launch", seen)
    jax.grad(jax.jit(lambda x: ops.spmm(W, 3 * x, GRAPH).sum()))(X)
    jax.jit(jax.grad(lambda w, x: ops.spmm(w, 3 * x, GRAPH).sum()))(W, X)
    assert asked == [("dense",), ("values",)]


def test_a_graph_lives_as_long_as_a_call_that_runs(ops: Any, jax: Any) -> None:
    made = [ops.agg_simple_n2n(jax.numpy.asarray(X), PLAIN.make(Host()), "sum") for _ in range(20)]
    for a in made:
        np.testing.assert_array_equal(a, SUM)


def test_a_compiled_function_keeps_the_graphs_made_in_it(ops: Any, jax: Any) -> None:
    product = jax.jit(lambda x: ops.agg_simple_n2n(x, PLAIN.make(Host()), "sum"))
    for _ in range(2):
        np.testing.assert_array_equal(product(X), SUM)
        gc.collect()


def test_a_graph_that_is_gone_is_an_error(ops: Any) -> None:
    graphs = importlib.import_module("edgegrad.jax.graphs")
    with pytest.raises(edgegrad.BackendError, match="graph of a compiled call is gone, expected"):
        graphs.struct_of(2**31 - 1)


def test_half_types(ops: Any, jax: Any, way: str) -> None:
    for dtype in (jax.numpy.bfloat16, jax.numpy.float16, jax.numpy.float32):
        x = jax.numpy.asarray(X, dtype)
        found = ops.agg_simple_n2n(x, GRAPH, "sum")
        assert found.dtype == dtype
        np.testing.assert_array_equal(found.astype(np.float64), SUM)


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ([1.0, 2.0], "spmm: `values` has type list, expected a JAX array"),
        (np.ones(5), r"spmm_fwd: `values` has shape \(5,\), expected \(n_indices=6\)"),
        (np.ones(6, np.int32), "spmm_fwd: `values` has dtype int32, expected float64"),
    ],
)
def test_bad_arguments_are_named(ops: Any, argument: Any, message: str) -> None:
    with pytest.raises(edgegrad.ArgumentError, match=message):
        ops.spmm(argument, X, GRAPH)


def test_nothing_is_narrowed_without_x64(ops: Any, jax: Any) -> None:
    with jax.enable_x64(False):
        with pytest.raises(TypeError, match="`values` has dtype float64, expected 32 bits, or jax"):
            ops.spmm(W, X, GRAPH)
        wide, x = PLAIN.make(Host(), np.int64), np.float32(X)
        with pytest.raises(TypeError, match="`graph` has int64 ids, expected int32 ids, or jax_en"):
            ops.agg_simple_n2n(x, wide, "max")
        np.testing.assert_array_equal(ops.agg_simple_n2n(x, wide, "sum"), SUM)


def test_notice_where_nothing_can_be_built(tmp_path: Any) -> None:
    pytest.importorskip("jax", reason="JAX is not installed")
    code = """
import warnings, jax, numpy as np, edgegrad, edgegrad.jax
graph = edgegrad.make_csc(np.array([0, 1, 2]), np.array([1, 0]))
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    for _ in range(2):
        y = edgegrad.jax.agg_simple_n2n(np.float32([[1], [2]]), graph, "sum")
print(y.ravel().tolist(), *[str(w.message) for w in seen], sep="\\n")
"""
    environment = {
        "PATH": "",
        "EDGEGRAD_CACHE_DIR": str(tmp_path),
        "PYTHONPATH": ":".join(sys.path),
    }
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True
    )
    values, *notices = done.stdout.splitlines()
    assert values == "[2.0, 1.0]"
    (notice,) = notices
    assert notice.startswith("edgegrad.jax calls go through jax.pure_callback, which is slow: ")
    assert "install a C++ compiler" in notice
