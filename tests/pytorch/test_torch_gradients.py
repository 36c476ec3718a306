"""First and second derivatives of every function of `edgegrad.torch`, by differences."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is missing: pip install torch")

from torch.autograd import gradcheck, gradgradcheck
from torch_cases import CASES, FIRST_ONLY, SECOND, Case, make_graph

import edgegrad

LAYOUTS = ("contiguous", "transposed", "expanded")
# Layouts do not depend on options.
_FIRST_OF_EACH = tuple({case.d.name: case for case in reversed(SECOND)}.values())


def _transposed(a: Any) -> Any:
    """The same values in memory that is not contiguous."""
    if a.dim() < 2:
        return torch.stack((a, a), dim=1)[:, 0]
    return a.transpose(0, -1).contiguous().transpose(0, -1)


def _leaves(case: Case, graph: Any, layout: str) -> tuple[Any, list[Any]]:
    """A function of leaves whose values reach the operator in a layout, and the leaves."""
    fixed = case.inputs(graph)
    function = case.function(graph, fixed)
    leaves = [fixed[name].clone().requires_grad_() for name in case.names]
    if layout == "contiguous":
        return function, leaves
    if layout == "transposed":
        return lambda *a: function(*map(_transposed, a)), leaves
    rows = [a.detach()[:1].clone().requires_grad_() for a in leaves]
    shapes = [a.shape for a in leaves]
    return lambda *a: function(*(x.expand(s) for x, s in zip(a, shapes, strict=True))), rows


def _has_ties(case: Case) -> bool:
    return case.full.get("aggregation_operation", case.full.get("reduce")) in ("min", "max", "std")


@pytest.mark.parametrize("case", CASES, ids=str)
def test_first_derivatives(case: Case) -> None:
    graph = make_graph(case)
    for layout in LAYOUTS:
        if layout == "expanded" and _has_ties(case):
            continue  # equal rows: differences see the kink
        function, leaves = _leaves(case, graph, layout)
        assert gradcheck(function, leaves, fast_mode=layout != "contiguous"), layout


@pytest.mark.parametrize("case", SECOND, ids=str)
def test_second_derivatives(case: Case) -> None:
    graph = make_graph(case)
    for layout in LAYOUTS if case in _FIRST_OF_EACH else LAYOUTS[:1]:
        function, leaves = _leaves(case, graph, layout)
        # First derivatives are also taken with gradients that are undefined; here that is slow.
        ok = gradgradcheck(function, leaves, fast_mode=True, check_undefined_grad=False)
        assert ok, layout


def test_second_derivatives_exactly() -> None:
    """All entries, not projections: one operator of each rule."""
    chosen = ("spmm", "sddmm", "edge_softmax", "agg_hg_basis_n2n_post", "agg_concat_weighted_n2n")
    for case in _FIRST_OF_EACH:
        if case.d.name in chosen:
            function, leaves = _leaves(case, make_graph(case), "contiguous")
            assert gradgradcheck(function, leaves), str(case)


@pytest.mark.parametrize("name", ["spmm", "edge_softmax", "agg_hg_basis_n2n_post"])
def test_third_derivatives(name: str) -> None:
    case = next(c for c in SECOND if c.d.name == name)
    function, leaves = _leaves(case, make_graph(case), "contiguous")

    def first(*arrays: Any) -> Any:
        return torch.autograd.grad(function(*arrays).sin().sum(), arrays, create_graph=True)

    assert gradgradcheck(first, leaves, fast_mode=True)


@pytest.mark.parametrize("case", FIRST_ONLY, ids=str)
def test_a_missing_second_derivative_raises(case: Case) -> None:
    graph = make_graph(case)
    function, leaves = _leaves(case, graph, "contiguous")

    def value(*arrays: Any) -> Any:
        return function(*arrays).sin().sum()

    grads = torch.autograd.grad(value(*leaves), leaves, create_graph=True)
    message = f"{case.d.name}: there is no second derivative with "
    with pytest.raises(edgegrad.DerivativeError, match=message):
        sum(g.square().sum() for g in grads).backward()

    def norm(*arrays: Any) -> Any:
        grads = torch.func.grad(value, argnums=tuple(range(len(arrays))))(*arrays)
        return sum(g.square().sum() for g in grads)

    with pytest.raises(edgegrad.DerivativeError, match=message):
        torch.func.grad(norm)(*(a.detach() for a in leaves))


def test_dropout_by_seed_has_no_second_derivative() -> None:
    case = next(c for c in SECOND if c.d.name == "mha_gat_n2n")
    case = Case(case.d, {**case.options, "dropout_p": 0.5, "dropout_seed": 7}, ("dropout_mask",))
    function, leaves = _leaves(case, make_graph(case), "contiguous")
    assert gradcheck(function, leaves, fast_mode=True)
    grads = torch.autograd.grad(function(*leaves).sum(), leaves, create_graph=True)
    with pytest.raises(edgegrad.DerivativeError, match="dropout_seed=7"):
        sum(g.sum() for g in grads).backward()


def test_masked_edges_have_second_derivatives() -> None:
    """A destination whose edges are all masked, and one of whose edges one is."""
    case = next(c for c in SECOND if c.d.name == "mha_simple_n2n")
    graph = make_graph(case)
    fixed = case.inputs(graph)
    fixed["edge_bias"] = torch.zeros_like(fixed["edge_bias"])
    ids = torch.as_tensor(graph.map_csc_to_coo)
    fixed["edge_bias"][ids[:4]] = -torch.inf
    case = Case(case.d, case.options)
    names = [n for n in case.names if n != "edge_bias"]
    function = case.function(graph, fixed)

    def of_features(*arrays: Any) -> Any:
        named = {**fixed, **dict(zip(names, arrays, strict=True))}
        return function(*(named[n] for n in case.names))

    leaves = [fixed[n].clone().requires_grad_() for n in names]
    assert gradcheck(of_features, leaves, fast_mode=True)
    assert gradgradcheck(of_features, leaves, fast_mode=True, check_undefined_grad=False)
