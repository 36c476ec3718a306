"""R12, R15 and R26 through PyTorch, JAX and HIPS autograd."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from devices import Host
from frameworks import Framework
from graphs import G0, GraphData, permuted_g0
from recipes.calls import PLAIN, SUM, SUM_DX, WEIGHTED, WEIGHTED_DW, WEIGHTED_DX, G, W, X

GAT = ("mha_gat_n2n", {"src_embedding": X, "attn_weights": np.array([1, -0.5, 0.25, 1])})
GAT_V2 = ("mha_gat_v2_n2n", {"src_embedding": X, "attn_weights": np.array([1, -0.5])})
DOT = ("mha_simple_n2n", {"query": X, "key": X, "value": X})
WEIGHTED_SUM = ("spmm", {"values": W, "dense": X})


def _derivatives(
    framework: Framework, graph: Any, call: Any, g: Any, **options: Any
) -> list[np.ndarray]:
    """The output and the gradients of the arrays."""
    name, arrays = call
    none = {"dst_embedding": None} if "gat" in name else {}
    on = {**none, "graph": graph, **options}
    of_operator = getattr(framework.operators, name)
    value, found = framework.vjp(
        lambda *xs: of_operator(**dict(zip(arrays, xs, strict=True)), **on),
        [framework.array(a) for a in arrays.values()],
        g,
    )
    return [framework.numpy(a) for a in (value, *found)]


# ---- R12


@pytest.mark.parametrize("graph", [G0, permuted_g0()], ids=["g0", "permuted"])
@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (GAT, [
            [[2.48676428, 0.89918333], [1, -2], [0, 0], [2.31119697, -0.06490008]],
            [[0.54336047, 0.99824938], [2.00352291, -0.85368648],
             [0.02311239, 0.04547], [-0.11529581, -0.00815292]],
            [1.39976775, -0.81785693, 0.36375997, -0.72751994],
        ]),
        (GAT_V2, [
            [[2.97650943, 0.51827044], [1, -2], [0, 0], [2.38093668, 0.03802366]],
            [[0.41677808, 0.75333087], [1.73689289, -0.67229319],
             [0.00054654, 0.01168397], [-0.1168288, 0.05225485]],
            [0.03553324, -0.64066696],
        ]),
        (DOT, [
            [[2.99867712, 0.50102891], [1, -2], [0, 0], [2.58360044, 0.90540507]],
            [[0.00420814, -0.003273], [0, 0], [0, 0], [0.33826852, -0.3485446]],
            [[0.00456714, 0.00342536], [0.68203933, 0.50895786],
             [-0.00093514, 0.00187028], [-0.68567134, -0.5142535]],
            [[0.00244322, 0.99755678], [1.58574969, -0.58604366],
             [0.00029397, 0], [0.41151312, -0.41151312]],
        ]),
    ],
    ids=["gat", "gat_v2", "dot"],
)  # fmt: skip
def test_r12(framework: Framework, graph: GraphData, call: Any, expected: Any) -> None:
    struct = graph.make(Host(), kind="csc")
    found = _derivatives(framework, struct, call, framework.array(G), num_heads=1)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-8)


@pytest.mark.parametrize("call", [GAT, GAT_V2, DOT], ids=["gat", "gat_v2", "dot"])
def test_r12_attention_is_in_the_callers_order(framework: Framework, call: Any) -> None:
    name, arrays = call
    struct = G0.make(Host(), kind="csc")
    none = {"dst_embedding": None} if "gat" in name else {}
    given = {k: framework.array(a) for k, a in arrays.items()}
    of_operator = getattr(framework.operators, name)
    _, alpha = of_operator(**given, **none, graph=struct, num_heads=1, return_attention=True)
    by_slot = {
        "mha_gat_v2_n2n": [0.99477987, 0.00522013, 1, 0.24023104, 0.62116771, 0.13860125],
        "mha_simple_n2n": [0.99970603, 0.00029397, 1, 0.00244322, 0.58604366, 0.41151312],
    }
    expected = np.array([0.11405238, 0.58979766, 1, 0.13160165, 0.88594762, 0.27860069])
    if name in by_slot:
        expected[G0.edge_ids] = by_slot[name]
    np.testing.assert_allclose(framework.numpy(alpha)[0], expected, atol=1e-8)


# ---- R15


def _broadcast(framework: Framework) -> Any:
    one = framework.array(np.array(1.0))
    module = framework.engine if framework.name == "torch" else None
    if module is not None:
        return one.expand(4, 2)
    return np.broadcast_to(np.array(1.0), (4, 2)) if framework.name == "autograd" else None


def _fortran(framework: Framework) -> Any:
    return framework.array(np.ascontiguousarray(G.T)).T


def _every_second(framework: Framework) -> Any:
    return framework.array(np.repeat(G, 2, axis=1))[:, ::2]


@pytest.mark.parametrize("call", [WEIGHTED_SUM, GAT, GAT_V2, DOT], ids=lambda c: c[0])
@pytest.mark.parametrize("place", [_broadcast, _fortran, _every_second])
def test_r15_gradients_with_strides(
    framework: Framework, call: Any, place: Callable[[Framework], Any]
) -> None:
    struct = G0.make(Host(), kind="csc")
    g = place(framework)
    if g is None:
        pytest.skip("JAX arrays have no strides")
    options = {"num_heads": 1} if "mha" in call[0] else {}
    found = _derivatives(framework, struct, call, g, **options)
    copy = framework.array(np.ascontiguousarray(framework.numpy(g)))
    for a, b in zip(found, _derivatives(framework, struct, call, copy, **options), strict=True):
        np.testing.assert_array_equal(a, b)
    if call is WEIGHTED_SUM and place is not _broadcast:
        for a, b in zip(found, (WEIGHTED, WEIGHTED_DW, WEIGHTED_DX), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)


# ---- R26


def test_r26_sums(framework: Framework) -> None:
    struct = PLAIN.make(Host())
    call = ("agg_simple_n2n", {"input_embedding": X})
    found = _derivatives(framework, struct, call, framework.array(G), aggregation_operation="sum")
    np.testing.assert_array_equal(found[0], SUM)
    np.testing.assert_array_equal(found[1], SUM_DX)


def test_r26_read_only_numpy() -> None:
    operators = pytest.importorskip("edgegrad.autograd", reason="autograd is not installed")
    x = np.array(X)
    x.flags.writeable = False
    np.testing.assert_array_equal(operators.agg_simple_n2n(x, PLAIN.make(Host()), "sum"), SUM)


def test_r26_torch_parameter_keeps_its_gradient() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    import edgegrad.torch as operators

    x = torch.nn.Parameter(torch.from_numpy(np.array(X)))
    with torch.no_grad():
        made = operators.agg_simple_n2n(x, PLAIN.make(Host()), "sum")
    np.testing.assert_array_equal(made.numpy(), SUM)
    assert x.grad is None
    assert not made.requires_grad


@pytest.mark.parametrize("kind", ["bool", "float64"])
def test_r26_dropout_masks(framework: Framework, kind: str) -> None:
    struct = G0.make(Host(), kind="csc")
    keep = np.array([[True, False, True, True, False, True]])
    name, arrays = GAT
    given = {k: framework.array(a) for k, a in arrays.items()}
    mask = framework.array(keep.astype(kind))
    out, alpha = getattr(framework.operators, name)(
        **given, dst_embedding=None, graph=struct, num_heads=1, dropout_mask=mask,
        return_attention=True,
    )  # fmt: skip
    expected = np.array([0.11405238, 0.58979766, 1, 0.13160165, 0.88594762, 0.27860069]) * keep
    np.testing.assert_allclose(framework.numpy(alpha), expected, atol=1e-8)
    assert framework.numpy(out).shape == (4, 2)
