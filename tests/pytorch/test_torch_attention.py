"""`CscGraph`, `mha_gat` and `mha_gat_v2` by their published contract."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is missing: pip install torch")

import edgegrad
from edgegrad.torch import CscGraph, mha_gat, mha_gat_v2


def _ids(*values: int, dtype: Any = torch.int32) -> Any:
    return torch.tensor(values, dtype=dtype)


def _graph(**more: Any) -> CscGraph:
    return CscGraph(_ids(0, 2, 5), _ids(0, 2, 1, 2, 3), 4, _ids(3, 0, 4, 1, 2), **more)


def test_the_published_example() -> None:
    offsets = torch.tensor([0, 2, 4], device="cpu", dtype=torch.int32)
    indices = torch.tensor([0, 1, 1, 2], device="cpu", dtype=torch.int32)
    graph = CscGraph(offsets, indices, num_src_nodes=3)
    src_features = torch.randn(3, 16, device="cpu", requires_grad=True)
    attn_weights = torch.randn(32, device="cpu", requires_grad=True)
    output, attention = mha_gat(
        graph,
        src_features,
        attn_weights,
        num_heads=2,
        return_attention_weights=True,
    )
    output.sum().backward()
    assert output.shape == (2, 16)
    assert (attention.shape, attention.dtype) == ((2, 4), torch.float32)
    torch.testing.assert_close(attention.view(2, 2, 2).sum(2), torch.ones(2, 2))
    assert torch.isfinite(src_features.grad).all()
    assert torch.isfinite(attn_weights.grad).all()


def test_the_published_reverse_graph() -> None:
    graph = _graph()
    assert (graph.num_dst_nodes, graph.num_edges, graph.has_reverse_csc) == (2, 5, False)
    reverse = graph.with_reverse_csc()
    assert reverse.csc_rev_offsets.tolist() == [0, 1, 2, 4, 5]
    assert reverse.map_rev_to_coo.tolist() == [3, 4, 0, 1, 2]
    assert reverse.has_reverse_csc
    assert reverse.with_reverse_csc() is reverse
    again = _graph(csc_rev_offsets=reverse.csc_rev_offsets, map_rev_to_coo=reverse.map_rev_to_coo)
    assert again.struct.has_reverse
    grads = []
    for g in (graph, reverse, again):
        x = torch.linspace(-1, 1, 16, dtype=torch.float64).view(4, 4).requires_grad_()
        out = mha_gat(g, x, torch.ones(8, dtype=torch.float64), deterministic=True)
        grads += torch.autograd.grad(out.sin().sum(), x)
    assert grads[0].any()
    assert torch.equal(grads[0], grads[1])
    assert torch.equal(grads[0], grads[2])


def test_graphs_are_frozen_and_checked() -> None:
    graph = _graph()
    with pytest.raises(AttributeError):
        graph.num_src_nodes = 5
    for more, kind, message in (
        ({"csc_rev_offsets": _ids(0, 1, 2, 4, 5)}, TypeError, "`map_rev_to_coo` has type None"),
        (
            {"csc_rev_offsets": _ids(0, 1, 2, 4, 5), "map_rev_to_coo": _ids(3, 4, 0, 2, 1)},
            ValueError,
            "`map_rev_to_coo` has values that are not those of the graph",
        ),
        (
            {"csc_rev_offsets": _ids(0, 1, 2, 4), "map_rev_to_coo": _ids(3, 4, 0, 1, 2)},
            ValueError,
            r"`csc_rev_offsets` has shape \(4,\), expected \(5,\)",
        ),
        (
            {"csc_rev_offsets": _ids(0, 2, 2, 4, 5), "map_rev_to_coo": _ids(3, 4, 0, 1, 2)},
            ValueError,
            "`csc_rev_offsets` has values",
        ),
    ):
        with pytest.raises(kind, match=message):
            _graph(**more)
    with pytest.raises(TypeError, match=r"`indices` has dtype torch.int64, expected torch.int32"):
        CscGraph(_ids(0, 1), _ids(0, dtype=torch.int64), 1)
    with pytest.raises(IndexError, match=r"indices\[1\]"):
        CscGraph(_ids(0, 2), _ids(0, 7), 3)


def test_both_sides_of_a_bipartite_graph() -> None:
    graph = CscGraph(_ids(0, 1, 3, 4), _ids(0, 0, 1, 1), 2)
    x, y = torch.randn(2, 4, requires_grad=True), torch.randn(3, 4, requires_grad=True)
    mha_gat_v2(graph, (x, y), torch.randn(4), num_heads=2).sum().backward()
    assert x.grad.shape == (2, 4)
    assert y.grad.shape == (3, 4)
    with pytest.raises(ValueError, match="`dst_embedding` has the value None"):
        mha_gat(graph, x, torch.randn(8))


@pytest.mark.parametrize("half", [torch.float16, torch.bfloat16])
def test_precision_of_gradients(half: Any) -> None:
    graph = _graph()
    for d, w in ((False, False), (False, True), (True, True), (True, False)):
        x = torch.randn(4, 4, dtype=half, requires_grad=True)
        weights = torch.randn(8, dtype=half, requires_grad=True)
        x.grad_dtype, weights.grad_dtype = None, None
        flags = {"high_precision_dgrad": d, "high_precision_wgrad": w}
        mha_gat(graph, x, weights, **flags).sum().backward()
        assert x.grad.dtype == (torch.float32 if d else half)
        assert weights.grad.dtype == (torch.float32 if w else half)
    x = torch.randn(4, 4, dtype=half, requires_grad=True)
    x.grad_dtype = torch.float32
    mha_gat_v2(graph, x, torch.randn(4, dtype=half), high_precision_grad=True).sum().backward()
    assert x.grad.dtype == torch.float32


def test_dropout_masks_and_attention_are_by_edge_id() -> None:
    graph, x = _graph(), torch.randn(4, 4, dtype=torch.float64)
    weights = torch.randn(8, dtype=torch.float64)
    mask = torch.zeros(1, 5)
    mask[0, 0] = 2.0  # the edge of id 0 is 2 -> 0, at position 1
    out, attention = mha_gat(graph, x, weights, dropout_mask=mask, return_attention_weights=True)
    assert attention[0, 1:].tolist() == [0, 0, 0, 0]
    torch.testing.assert_close(out[0], attention[0, 0] * x[2])
    assert out[1].tolist() == [0, 0, 0, 0]


def test_gradients_of_returned_attention() -> None:
    graph = _graph()
    x = torch.randn(4, 4, dtype=torch.float64, requires_grad=True)
    w = torch.randn(8, dtype=torch.float64, requires_grad=True)

    def attention(x: Any, w: Any) -> Any:
        return mha_gat(graph, x, w, num_heads=2, return_attention_weights=True)[1]

    assert torch.autograd.gradcheck(attention, (x, w), fast_mode=True)
    assert torch.autograd.gradgradcheck(attention, (x, w), fast_mode=True)


@pytest.mark.parametrize("make", [mha_gat, mha_gat_v2])
def test_empty_graphs(make: Any) -> None:
    width = 8 if make is mha_gat else 4
    for offsets, n_src in ((_ids(0), 3), (_ids(0, 0, 0), 3), (_ids(0), 0)):
        graph = CscGraph(offsets, _ids(), n_src)
        x = torch.randn(n_src, 4, requires_grad=True)
        out, attention = make(graph, x, torch.randn(width), return_attention_weights=True)
        out.sum().backward()
        assert out.shape == (len(offsets) - 1, 4)
        assert attention.shape == (1, 0)
        assert not out.any()
        assert not x.grad.any()


def test_arguments_are_checked_in_one_place() -> None:
    graph, x, w = _graph(), torch.randn(4, 4), torch.randn(8)
    assert mha_gat(graph, x, w, num_heads=np.int64(2)).shape == (2, 4)
    for change, kind, message in (
        ({"num_heads": 2.0}, TypeError, "`num_heads` has type float"),
        ({"num_heads": True}, TypeError, "`num_heads` has type bool"),
        ({"num_heads": 0}, ValueError, "`num_heads` is 0"),
        ({"num_heads": 3}, ValueError, "num_heads=3"),
        ({"activation": "gelu"}, ValueError, "`activation` is 'gelu'"),
        ({"deterministic": "yes"}, ValueError, "`deterministic` is 'str'"),
        ({"attn_weights": torch.randn(7)}, ValueError, r"`attn_weights` has shape \(7,\)"),
        ({"features": (x, x, x)}, TypeError, "`features` has 3 tensors"),
        ({"dropout_mask": torch.ones(2, 5)}, ValueError, r"`dropout_mask` has shape \(2, 5\)"),
        ({"graph": graph.struct}, TypeError, "`graph` has type csc_int32, expected a CscGraph"),
    ):
        with pytest.raises(kind, match=message) as caught:
            mha_gat(**{"graph": graph, "features": x, "attn_weights": w, **change})
        assert isinstance(caught.value, edgegrad.ArgumentError)


def test_compiled() -> None:
    graph, x = _graph(), torch.randn(4, 4, dtype=torch.float64, requires_grad=True)
    w = torch.randn(8, dtype=torch.float64)

    def loss(x: Any, graph: Any) -> Any:
        return mha_gat(graph, x.sin(), w, num_heads=2, activation="tanh").square().sum()

    expected = torch.autograd.grad(loss(x, graph), x)
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(torch.autograd.grad(compiled(x, graph), x), expected)
