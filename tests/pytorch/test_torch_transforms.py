"""torch.func, torch.compile, autocast, and the messages of `edgegrad.torch`."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is missing: pip install torch")

from torch_cases import CASES, Case, make_graph

import edgegrad
import edgegrad.torch as et
import graphs
from devices import Host
from edgegrad.differentiation import DIFFERENTIABLE


@pytest.fixture(autouse=True)
def fresh_compiler() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


FIRST = {case.d.name: case for case in reversed(CASES)}


def _value(case: Case) -> tuple[Any, list[Any]]:
    graph = make_graph(case)
    fixed = case.inputs(graph)
    function = case.function(graph, fixed)
    return lambda *a: function(*a).sin().sum(), [fixed[name] for name in case.names]


def _close(a: Any, b: Any) -> None:
    for x, y in zip(a, b, strict=True):
        torch.testing.assert_close(x, y, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", [d.name for d in DIFFERENTIABLE])
def test_func_grad_and_compile_agree_with_backward(name: str) -> None:
    value, arrays = _value(FIRST[name])
    leaves = [a.clone().requires_grad_() for a in arrays]
    value(*leaves).backward()
    expected = [a.grad for a in leaves]
    function = torch.func.grad(value, argnums=tuple(range(len(arrays))))
    _close(function(*arrays), expected)
    again = [a.clone().requires_grad_() for a in arrays]
    torch.compile(value, fullgraph=True, backend="aot_eager")(*again).backward()
    _close([a.grad for a in again], expected)
    _close(torch.compile(function, fullgraph=True, backend="aot_eager")(*arrays), expected)


@pytest.mark.parametrize("name", ["spmm", "edge_softmax", "mha_gat_n2n"])
def test_second_derivatives_of_every_kind_agree(name: str) -> None:
    value, arrays = _value(FIRST[name])
    smallest = min(range(len(arrays)), key=lambda i: arrays[i].numel())
    x = arrays[smallest]

    def of_one(a: Any) -> Any:
        return value(*arrays[:smallest], a, *arrays[smallest + 1 :])

    expected = torch.autograd.functional.hessian(of_one, x)
    hessian = torch.func.jacrev(torch.func.grad(of_one))(x)
    _close([hessian], [expected])

    def norm(a: Any) -> Any:
        return torch.func.grad(of_one)(a).square().sum()

    got = torch.compile(torch.func.grad(norm), fullgraph=True, backend="aot_eager")(x)
    _close([got], [torch.func.grad(norm)(x)])


@pytest.mark.parametrize("name", ["spmm", "agg_simple_n2n", "mha_gat_v2_n2n"])
def test_vjp_jacrev_and_vmap(name: str) -> None:
    case = FIRST[name]
    graph = make_graph(case)
    fixed = case.inputs(graph)
    function, x = case.function(graph, fixed), [fixed[n] for n in case.names]
    out, pullback = torch.func.vjp(function, *x)
    leaves = [a.clone().requires_grad_() for a in x]
    _close(pullback(out.cos()), torch.autograd.grad(function(*leaves), leaves, out.cos()))
    jacobians = torch.func.jacrev(function, argnums=tuple(range(len(x))))(*x)
    _close(jacobians, torch.autograd.functional.jacobian(function, tuple(x)))
    batch = torch.stack((x[0], 2 * x[0]))
    mapped = torch.func.vmap(lambda a: function(a, *x[1:]))(batch)
    _close(mapped, [function(a, *x[1:]) for a in batch])


def test_one_compilation_serves_graphs_of_any_size() -> None:
    compiled = torch.compile(
        lambda x, graph: et.spmm(None, x.sin(), graph),
        fullgraph=True,
        dynamic=True,
        backend="aot_eager",
    )
    torch._dynamo.utils.counters.clear()
    for n in (3, 5, 8, 13):
        rng = np.random.default_rng(n)
        graph = edgegrad.from_coo(*rng.integers(0, n, (2, 4 * n)), n)
        x = torch.randn(n, 4)
        torch.testing.assert_close(compiled(x, graph), et.spmm(None, x.sin(), graph))
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] <= 2


def test_a_graph_may_go_between_forward_and_backward() -> None:
    graph = graphs.G0.make(Host(), kind="csc")
    x = torch.ones(4, 2, requires_grad=True)
    y = torch.compile(lambda x, g: et.agg_simple_n2n(x, g), fullgraph=True, backend="aot_eager")(
        x, graph
    )
    del graph
    y.sum().backward()
    assert x.grad.tolist() == [[2, 2], [2, 2], [1, 1], [1, 1]]


@pytest.mark.parametrize("lower", [torch.bfloat16, torch.float16])
def test_autocast(lower: Any) -> None:
    graph = graphs.G0.make(Host())
    x, w = torch.randn(4, 2), torch.randn(3, 2, requires_grad=True)
    with torch.autocast("cpu", lower):
        half = torch.nn.Linear(2, 2)(x)
        assert half.dtype == lower
        assert et.agg_simple_n2n(half, graph).dtype == lower
        out = et.agg_hg_basis_n2n_post(half, w, graph)
        both = et.update_efeat_e2e_concat(None, half, x, graph)
        attended = et.mha_gat_n2n(x, None, torch.randn(4), graphs.G0.make(Host(), kind="csc"), 1)
    assert (out.dtype, both.dtype, attended.dtype) == (lower, torch.float32, lower)
    out.sum().backward()
    assert w.grad.dtype == torch.float32
    with pytest.raises(TypeError, match="`input_dst_node_embedding` has dtype float32, expected"):
        et.update_efeat_e2e_concat(None, half, x, graph)


def test_grad_scaler_sees_what_overflows() -> None:
    graph = graphs.G0.make(Host(), kind="csc")
    x = torch.full((4, 2), 6e4, dtype=torch.float16, requires_grad=True)
    assert torch.isinf(et.agg_simple_n2n(x, graph)).any()


def test_functions_have_signatures_and_docstrings() -> None:
    for d in DIFFERENTIABLE:
        function = getattr(et, d.name)
        parameters = inspect.signature(function).parameters
        assert "stream_id" not in parameters
        assert set(parameters) >= {a.name for a in d.op.inputs}
        for a in (*d.op.inputs, *d.op.outputs):
            assert f"{a.name} : Tensor (" in function.__doc__


def test_messages() -> None:
    graph = graphs.G0.make(Host(), kind="csc")
    x = torch.ones(4, 2)
    for call, kind, message in (
        (lambda: et.spmm(None, np.ones((4, 2)), graph), TypeError, "`dense` has type ndarray"),
        (lambda: et.spmm(None, x, "graph"), TypeError, "`graph` has type str, expected a graph"),
        (lambda: et.spmm(None), TypeError, "spmm: `dense` is missing"),
        (lambda: et.spmm(None, x, graph, reduction="sum"), TypeError, "argument `reduction`"),
        (lambda: et.spmm(None, x, graph, dense=x), TypeError, "repeated argument `dense`"),
        (lambda: et.spmm(None, x, graph, "sum"), TypeError, "4 arguments by position, expected 3"),
        (lambda: et.spmm(None, x, graph, reduce="median"), ValueError, "`reduce` is 'median'"),
        (lambda: et.spmm(None, x[:3], graph), ValueError, r"`dense` has shape \(3, 2\)"),
        (lambda: et.spmm(None, x.long(), graph), TypeError, "`dense` has dtype int64"),
        (lambda: et.spmm(None, x[0], graph), ValueError, r"`dense` has shape \(2,\)"),
        (lambda: et.spmm(torch.ones(5), x, graph), ValueError, r"`values` has shape \(5,\)"),
    ):
        with pytest.raises(kind, match=message) as caught:
            call()
        assert "\n" not in str(caught.value)


def test_the_library_alone_imports_no_torch() -> None:
    code = "import sys, edgegrad; sys.exit('torch' in sys.modules or 'jax' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
