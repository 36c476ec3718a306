"""Recipes R12, R15 and R26 through PyTorch: attention, strided gradients, PyTorch's tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import edgegrad
import graphs
from devices import Host
from recipes import calls

torch = pytest.importorskip("torch", reason="torch is missing: pip install torch")
et = pytest.importorskip("edgegrad.torch")


def _graph() -> Any:
    return graphs.G0.make(Host(), np.int64, "csc")


def _csc_graph() -> Any:
    data = graphs.G0
    arrays = (torch.tensor(a) for a in (data.offsets, data.indices, data.edge_ids))
    offsets, indices, ids = arrays
    return et.CscGraph(offsets, indices, data.n_src, ids)


def _tensor(a: Any, *, grad: bool = True) -> Any:
    return torch.tensor(a, dtype=torch.float64, requires_grad=grad)


def _close(got: Any, expected: Any) -> None:
    np.testing.assert_allclose(got.detach().numpy(), expected, rtol=0, atol=2e-8)


BY_SLOT = graphs.G0.edge_ids
GAT_OUT = [[2.48676428, 0.89918333], [1, -2], [0, 0], [2.31119697, -0.06490008]]
GAT_DX = [
    [0.54336047, 0.99824938],
    [2.00352291, -0.85368648],
    [0.02311239, 0.04547],
    [-0.11529581, -0.00815292],
]
GAT_DW = [1.39976775, -0.81785693, 0.36375997, -0.72751994]


def test_r12_gat() -> None:
    x, w, g = _tensor(calls.X), _tensor([1, -0.5, 0.25, 1]), _tensor(calls.G, grad=False)
    out, alpha = et.mha_gat(_csc_graph(), x, w, return_attention_weights=True)
    _close(alpha, [[0.11405238, 0.58979766, 1, 0.13160165, 0.88594762, 0.27860069]])
    _close(out, GAT_OUT)
    out.backward(g)
    _close(x.grad, GAT_DX)
    _close(w.grad, GAT_DW)


def test_r12_gat_v2() -> None:
    x, w, g = _tensor(calls.X), _tensor([1, -0.5]), _tensor(calls.G, grad=False)
    out, alpha = et.mha_gat_v2(_csc_graph(), x, w, return_attention_weights=True)
    by_slot = [0.99477987, 0.00522013, 1, 0.24023104, 0.62116771, 0.13860125]
    _close(alpha[0, BY_SLOT], by_slot)
    _close(out, [[2.97650943, 0.51827044], [1, -2], [0, 0], [2.38093668, 0.03802366]])
    out.backward(g)
    _close(w.grad, [0.03553324, -0.64066696])
    _close(
        x.grad,
        [
            [0.41677808, 0.75333087],
            [1.73689289, -0.67229319],
            [0.00054654, 0.01168397],
            [-0.1168288, 0.05225485],
        ],
    )


def test_r12_transformer() -> None:
    q, k, v = (_tensor(calls.X) for _ in range(3))
    out, alpha = et.mha_simple_n2n(q, k, v, _graph(), 1, return_attention=True)
    by_slot = [0.99970603, 0.00029397, 1, 0.00244322, 0.58604366, 0.41151312]
    _close(alpha[0, BY_SLOT], by_slot)
    _close(out, [[2.99867712, 0.50102891], [1, -2], [0, 0], [2.58360044, 0.90540507]])
    out.backward(_tensor(calls.G, grad=False))
    _close(q.grad, [[0.00420814, -0.003273], [0, 0], [0, 0], [0.33826852, -0.3485446]])
    _close(
        k.grad,
        [
            [0.00456714, 0.00342536],
            [0.68203933, 0.50895786],
            [-0.00093514, 0.00187028],
            [-0.68567134, -0.5142535],
        ],
    )
    _close(
        v.grad,
        [
            [0.00244322, 0.99755678],
            [1.58574969, -0.58604366],
            [0.00029397, 0],
            [0.41151312, -0.41151312],
        ],
    )


@pytest.mark.parametrize("heads", [1, 3, 4, 33])
@pytest.mark.parametrize("function", [et.mha_gat, et.mha_gat_v2])
def test_r12_heads_one_by_one(function: Any, heads: int) -> None:
    """Copies of a head, and heads of features scaled by 1, 2, -1, .5, equal the single heads."""
    graph, weights = _csc_graph(), [1, -0.5, 0.25, 1] if function is et.mha_gat else [1, -0.5]
    for scales in ([1] * heads, [(1, 2, -1, 0.5)[i % 4] for i in range(heads)]):
        singles = [
            function(graph, _tensor(s * calls.X), _tensor(weights)) for s in dict.fromkeys(scales)
        ]
        by_scale = dict(zip(dict.fromkeys(scales), singles, strict=True))
        x = _tensor(np.hstack([s * calls.X for s in scales]))
        # Head by head inside each of the parts of the weights.
        parts = np.reshape(weights, (-1, 1, 2)).repeat(heads, axis=1).ravel()
        out = function(graph, x, _tensor(parts), num_heads=heads)
        expected = torch.cat([by_scale[s] for s in scales], dim=1)
        torch.testing.assert_close(out, expected, rtol=1e-12, atol=1e-12)


def _strided(g: Any) -> list[Any]:
    """The gradient in Fortran order, and as every second column of another array."""
    wide = torch.zeros(g.shape[0], 2 * g.shape[1], dtype=g.dtype)
    wide[:, ::2] = g
    return [g.t().contiguous().t(), wide[:, ::2]]


def test_r15_strided_gradients_of_a_weighted_sum() -> None:
    g = _tensor(calls.G, grad=False)
    for given in (g, *_strided(g)):
        x, w = _tensor(calls.X), _tensor(calls.W)
        out = et.spmm(w, x, _graph())  # weights in the caller's order
        _close(out, calls.WEIGHTED)
        out.backward(given)
        _close(x.grad, calls.WEIGHTED_DX)
        _close(w.grad, calls.WEIGHTED_DW)


def test_r15_gradients_of_stride_0() -> None:
    ones = torch.ones(1, dtype=torch.float64).expand(4, 2)
    x = _tensor(calls.X)
    et.agg_simple_n2n(x, _graph()).backward(ones)
    assert x.grad.tolist() == [[2, 2], [2, 2], [1, 1], [1, 1]]
    grads = []
    for g in (ones, ones.contiguous()):
        x, w = _tensor(calls.X), _tensor([1, -0.5, 0.25, 1])
        grads.append(torch.autograd.grad(et.mha_gat(_csc_graph(), x, w), (x, w), g))
    for strided, plain in zip(*grads, strict=True):
        assert torch.equal(strided, plain)


def test_r15_strided_gradients_of_attention() -> None:
    g = _tensor(calls.G, grad=False)
    for given in _strided(g):
        x, w = _tensor(calls.X), _tensor([1, -0.5, 0.25, 1])
        et.mha_gat(_csc_graph(), x, w).backward(given)
        _close(x.grad, GAT_DX)
        _close(w.grad, GAT_DW)


def test_r26_tensors_that_require_grad() -> None:
    """Inputs and what autograd knows of them stay as they are, in every way to call."""
    x = _tensor(calls.X)
    (x * 2).sum().backward()
    grad, version = x.grad.clone(), x._version
    _close(et.agg_simple_n2n(x, _graph()), calls.SUM)
    parameter = torch.nn.Parameter(torch.tensor(calls.X))
    with torch.no_grad():
        _close(et.agg_simple_n2n(parameter, _graph()), calls.SUM)
    out = torch.full((4, 2), torch.nan, dtype=torch.float64)
    edgegrad.operators.agg_simple_n2n_fwd(out, parameter, _graph())
    _close(out, calls.SUM)
    assert torch.equal(x.grad, grad)
    assert (x._version, x.requires_grad, parameter.grad) == (version, True, None)


@pytest.mark.parametrize("dtype", [torch.bool, torch.float32, torch.float64])
def test_r26_masks(dtype: Any) -> None:
    """Of booleans True keeps, with the factor of `dropout_p`; numbers are the factors."""
    keep = torch.tensor([[True, False, True, True, False, True]])
    mask = keep if dtype is torch.bool else keep.to(dtype) * 2
    p = 0.5 if dtype is torch.bool else 0.0
    x, w = _tensor(calls.X), _tensor([1, -0.5, 0.25, 1])
    _, plain = et.mha_gat(_csc_graph(), x, w, return_attention_weights=True)
    _, dropped = et.mha_gat_n2n(
        x, None, w, _graph(), 1, dropout_mask=mask, dropout_p=p, return_attention=True
    )
    torch.testing.assert_close(dropped, plain * keep * 2)
