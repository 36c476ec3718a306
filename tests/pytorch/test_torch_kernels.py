"""The operators that torch sees: schemas, fake kernels, batches."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is missing: pip install torch")

from torch_cases import CASES, Case, make_graph

import edgegrad
import edgegrad.torch as et
from edgegrad.differentiation import DIFFERENTIABLE
from edgegrad.torch import kernels


def _recorded(case: Case, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, tuple[Any, ...]]]:
    """Arguments of both halves in a call and its backward."""
    made: list[tuple[str, tuple[Any, ...]]] = []
    for half, table in (("fwd", kernels.FORWARD), ("bwd", kernels.BACKWARD)):
        real = table[case.d.name]

        def record(*args: Any, half: str = half, real: Any = real) -> Any:
            made.append(
                (half, tuple(a.detach() if isinstance(a, torch.Tensor) else a for a in args))
            )
            return real(*args)

        monkeypatch.setitem(table, case.d.name, record)
    graph = make_graph(case)
    fixed = case.inputs(graph, torch.float32)
    leaves = [fixed[name].requires_grad_() for name in case.names]
    case.function(graph, fixed)(*leaves).sum().backward()
    made.append(("graph", (graph,)))
    return made


FULLEST = {case.d.name: case for case in reversed(CASES) if not case.without}
FULLEST = {**{case.d.name: case for case in reversed(CASES)}, **FULLEST}


@pytest.mark.parametrize("name", [d.name for d in DIFFERENTIABLE])
def test_opcheck(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    *made, _ = _recorded(FULLEST[name], monkeypatch)
    assert [half for half, _ in made] == ["fwd", "bwd"]
    for half, args in made:
        function = FULLEST[name].d.op.functions[half]
        operator = getattr(torch.ops.edgegrad, function).default
        found = torch.library.opcheck(
            operator,
            args,
            test_utils=("test_schema", "test_autograd_registration", "test_faketensor"),
        )
        assert set(found.values()) == {"SUCCESS"}


@pytest.mark.parametrize("name", ["spmm", "agg_simple_n2n", "mha_gat_n2n"])
def test_opcheck_of_compiled(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    *made, _ = _recorded(FULLEST[name], monkeypatch)
    for half, args in made:
        operator = getattr(torch.ops.edgegrad, FULLEST[name].d.op.functions[half]).default
        torch.library.opcheck(operator, args, test_utils="test_aot_dispatch_dynamic")


def test_the_orders_of_edges() -> None:
    graph = make_graph(FULLEST["spmm"])
    from edgegrad.torch.graphs import reference

    token, a = reference("test", graph).token, torch.arange(9.0)
    ids = torch.as_tensor(graph.map_csc_to_coo)
    by_position = torch.ops.edgegrad.by_position(a, token)
    assert torch.equal(by_position, a[ids])
    assert torch.equal(torch.ops.edgegrad.by_id(by_position, token), a)
    for operator in (kernels.BY_POSITION, kernels.BY_ID):
        torch.library.opcheck(operator, (a, token))


def test_kernels_are_called_by_operators_that_modes_see() -> None:
    from torch.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Seen(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    case = FULLEST["agg_simple_n2n"]
    graph = make_graph(case)
    with Seen():
        et.agg_simple_n2n(torch.ones(5, 2), graph)
    assert "edgegrad.agg_simple_n2n_fwd.default" in seen


def test_shapes_on_fake_tensors() -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    case = FULLEST["agg_simple_n2n"]
    graph = make_graph(case)
    et.agg_simple_n2n(torch.ones(5, 2), graph)
    with FakeTensorMode(allow_non_fake_inputs=True):
        assert et.agg_simple_n2n(torch.ones(5, 2), graph).shape == (4, 2)
        with pytest.raises(edgegrad.ArgumentError, match=r"`input_embedding` has shape \(3, 2\)"):
            et.agg_simple_n2n(torch.ones(3, 2), graph)


def test_tokens_keep_graphs_alive_and_nothing_else_does() -> None:
    import gc
    import weakref

    case = FULLEST["agg_simple_n2n"]
    graph = make_graph(case)
    x = torch.ones(5, 2, requires_grad=True)
    y = et.agg_simple_n2n(x, graph)
    gone = weakref.ref(graph)
    del graph
    gc.collect()
    assert gone() is None
    y.sum().backward()  # what the graph was made of is still there
    assert x.grad.sum() == 9 * 2
    structs = len(kernels.struct_of.__globals__["_structs"])
    del y
    gc.collect()
    assert len(kernels.struct_of.__globals__["_structs"]) < structs
