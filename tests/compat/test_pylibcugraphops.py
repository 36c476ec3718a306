"""Code written for pylibcugraphops on edgegrad: PyG's CuGraph layers, its own tests' parameters."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import edgegrad
from edgegrad.compat import modules, pylibcugraphops

torch = pytest.importorskip("torch", reason="torch is missing: pip install torch")
pyg = pytest.importorskip(
    "torch_geometric.nn", reason="PyG is missing: pip install torch_geometric"
)

from torch_geometric import EdgeIndex

IN, OUT, BIAS = 8, 12, pytest.mark.parametrize("bias", [True, False])
BIPARTITE = pytest.mark.parametrize("bipartite", [True, False])
DEGREE = pytest.mark.parametrize("max_num_neighbors", [8, None])


@pytest.fixture(scope="module")
def installed() -> Iterator[Any]:
    """The module tree under its published name, taken away again."""
    before = dict(sys.modules)
    yield pylibcugraphops.install()
    for name in [n for n in sys.modules if n.startswith("pylibcugraphops")]:
        del sys.modules[name]
    assert {n for n in before if n.startswith("pylibcugraphops")} == set()


@pytest.fixture(scope="module")
def layers(installed: Any) -> Any:
    """PyG's module of CuGraph layers, imported after `install`, without its check for a GPU."""
    package = importlib.import_module("torch_geometric.nn.conv.cugraph")
    base = importlib.reload(importlib.import_module("torch_geometric.nn.conv.cugraph.base"))
    source = inspect.getsource(base)
    assert source.count("if not row.is_cuda:") == 1
    exec(source.replace("if not row.is_cuda:", "if False:"), base.__dict__)
    package.CuGraphModule = base.CuGraphModule
    for name in ("rgcn_conv", "gat_conv", "sage_conv"):
        importlib.reload(importlib.import_module(f"torch_geometric.nn.conv.cugraph.{name}"))
    assert base.HAS_PYLIBCUGRAPHOPS
    assert not base.LEGACY_MODE
    return importlib.reload(package)


def _graph(bipartite: bool) -> tuple[Any, Any, Any]:
    """Features, edges, and the size, as PyG's own tests have them."""
    edge_index = torch.tensor([[7, 8, 3, 0, 1, 0, 1, 1, 3, 5], [0, 1, 1, 0, 3, 2, 4, 4, 6, 7]])
    size = (10, 8) if bipartite else (10, 10)
    torch.manual_seed(12345)
    return torch.randn(10, IN), EdgeIndex(edge_index, sparse_size=size), size


def _same(plain: Any, ours: Any, x: Any, size: Any, plain_args: Any, our_args: Any) -> None:
    """Outputs and gradients of the features."""
    results = []
    for layer, args in ((plain, plain_args), (ours, our_args)):
        leaf = x.clone().requires_grad_()
        given = (leaf, leaf[: size[1]]) if layer is plain and size[0] != size[1] else leaf
        out = layer(given, *args)
        results.append((out, *torch.autograd.grad(out.sin().sum(), leaf)))
    for a, b in zip(*results, strict=True):
        torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("aggr", ["mean", "sum", "max", "min"])
@pytest.mark.parametrize("options", [{}, {"root_weight": False}, {"project": True},
                                     {"normalize": True}], ids=str)  # fmt: skip
@BIAS
@BIPARTITE
@DEGREE
def test_sage(
    layers: Any, aggr: str, options: Any, bias: bool, bipartite: bool, max_num_neighbors: Any
) -> None:
    x, edges, size = _graph(bipartite)
    plain = pyg.SAGEConv(IN, OUT, aggr=aggr, bias=bias, **options)
    ours = layers.CuGraphSAGEConv(IN, OUT, aggr=aggr, bias=bias, **options)
    with torch.no_grad():
        ours.lin.weight[:, :IN] = plain.lin_l.weight
        if options.get("root_weight", True):
            ours.lin.weight[:, IN:] = plain.lin_r.weight
        if options.get("project"):
            ours.pre_lin.load_state_dict(plain.lin.state_dict())
        if bias:
            ours.lin.bias.copy_(plain.lin_l.bias)
    if options.get("project"):
        # PyG's plain layer projects the sources' features alone, this one all that it has: hand
        # both what is projected already. Without ReLU, whose zeros would be ties.
        x, plain.project, ours.project = ours.pre_lin(x).detach(), False, False
    _same(plain, ours, x, size, (edges.as_tensor(),), (edges, max_num_neighbors))


@pytest.mark.parametrize("heads", [1, 2, 3, 5, 10, 16])
@pytest.mark.parametrize("concat", [True, False])
@pytest.mark.parametrize("edge_features", [True, False])
@BIAS
@BIPARTITE
@DEGREE
def test_gat(
    layers: Any, heads: int, concat: bool, edge_features: bool, bias: bool, bipartite: bool,
    max_num_neighbors: Any,
) -> None:  # fmt: skip
    x, edges, size = _graph(bipartite)
    width = heads * OUT
    plain = pyg.GATConv(
        IN, OUT, heads, concat, bias=bias, add_self_loops=False,
        edge_dim=width if edge_features else None,
    )  # fmt: skip
    ours = layers.CuGraphGATConv(IN, OUT, heads, concat, bias=bias)
    parts = [plain.att_src, plain.att_dst]
    attr = None
    if edge_features:
        attr = torch.randn(edges.size(1), width)
        parts.append(plain.att_edge)
        torch.nn.init.eye_(plain.lin_edge.weight)
    ours.lin.weight = plain.lin.weight
    ours.att = torch.nn.Parameter(torch.cat([p.detach().flatten() for p in parts]))
    # The layer sorts edges by destination and takes edge features in that order.
    in_order = None if attr is None else attr[edges.sort_by("col")[1]]
    args = ((edges.as_tensor(), attr), (edges, in_order, max_num_neighbors))
    _same(plain, ours, x, size, *args)


@pytest.mark.parametrize("aggr", ["add", "sum", "mean"])
@pytest.mark.parametrize("num_bases", [1, 2, None])
@pytest.mark.parametrize("root_weight", [True, False])
@BIAS
@BIPARTITE
@DEGREE
def test_rgcn(
    layers: Any, aggr: str, num_bases: Any, root_weight: bool, bias: bool, bipartite: bool,
    max_num_neighbors: Any,
) -> None:  # fmt: skip
    x, edges, size = _graph(bipartite)
    types = torch.tensor([0, 2, 0, 2, 1, 2, 0, 1, 1, 2])
    plain = pyg.RGCNConv(IN, OUT, 3, num_bases, aggr=aggr, bias=bias, root_weight=root_weight)
    ours = layers.CuGraphRGCNConv(
        IN, OUT, 3, num_bases, aggr=aggr, bias=bias, root_weight=root_weight
    )
    with torch.no_grad():
        n = len(plain.weight)
        ours.weight[:n] = plain.weight
        if root_weight:
            ours.weight[n] = plain.root
        if num_bases is not None:
            ours.comp.copy_(plain.comp)
    args = (edges.as_tensor(), types), (edges, types, max_num_neighbors)
    _same(plain, ours, x, size, *args)


def test_what_is_installed(installed: Any) -> None:
    import pylibcugraphops  # type: ignore[import-not-found]
    import pylibcugraphops.operators as explicit  # type: ignore[import-not-found]
    from pylibcugraphops import make_csc, make_csc_hg  # type: ignore[import-not-found]
    from pylibcugraphops.pytorch import CSC, HeteroCSC  # type: ignore[import-not-found]
    from pylibcugraphops.pytorch import operators as ops  # type: ignore[import-not-found]

    assert pylibcugraphops is installed
    assert make_csc is edgegrad.make_csc
    assert make_csc_hg is edgegrad.make_csc_hg
    assert explicit.agg_simple_n2n_fwd is edgegrad.operators.agg_simple_n2n_fwd
    offsets, indices = torch.tensor([0, 2, 3]), torch.tensor([1, 2, 0])
    graph = CSC(offsets, indices, num_src_nodes=3)
    assert isinstance(graph, edgegrad.csc_int64)
    x = torch.arange(6.0).view(3, 2)
    assert ops.agg_simple_n2n(x, graph, "sum").tolist() == [[6, 8], [0, 1]]
    types = torch.tensor([0, 1, 0], dtype=torch.int32)
    hetero = HeteroCSC(offsets, indices, types, 3, 2)
    out = ops.agg_hg_basis_n2n_post(x, None, hetero, concat_own=True, norm_by_out_degree=True)
    assert out.tolist() == [[2, 3, 4, 5, 0, 1], [0, 1, 0, 0, 2, 3]]


def test_weights_are_in_csc_order(installed: Any) -> None:
    from pylibcugraphops.pytorch import CSC  # type: ignore[import-not-found]
    from pylibcugraphops.pytorch import operators as ops  # type: ignore[import-not-found]

    ids = torch.tensor([2, 0, 1])
    graph = CSC(torch.tensor([0, 2, 3]), torch.tensor([1, 0, 1]), 2, map_csc_to_coo=ids)
    x, w = torch.tensor([[1.0], [10.0]]), torch.tensor([1.0, 2.0, 3.0])
    assert ops.agg_weighted_n2n(x, w, graph).tolist() == [[12], [30]]
    assert edgegrad.torch.agg_weighted_n2n(x, w[ids.argsort()], graph).tolist() == [[12], [30]]


def test_more_destinations_than_sources(installed: Any) -> None:
    from pylibcugraphops.pytorch import CSC  # type: ignore[import-not-found]

    graph = CSC(torch.tensor([0, 1, 2]), torch.tensor([0, 0]), 1)
    assert isinstance(graph, edgegrad.bipartite_csc_int64)


def test_a_library_in_use_is_not_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pylibcugraphops", np)
    with pytest.raises(RuntimeError, match="pylibcugraphops is imported already"):
        modules.install({"pylibcugraphops": {}})


def test_cudnn_gnn(monkeypatch: pytest.MonkeyPatch) -> None:
    from edgegrad.compat import cudnn_gnn

    for name in ("cudnn", "cudnn.gnn"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    try:
        assert cudnn_gnn.install().mha_gat is edgegrad.torch.mha_gat
        from cudnn.gnn import CscGraph, mha_gat_v2  # type: ignore[import-not-found]

        assert CscGraph is edgegrad.torch.CscGraph
        assert mha_gat_v2 is edgegrad.torch.mha_gat_v2
    finally:
        for name in ("cudnn", "cudnn.gnn"):
            sys.modules.pop(name, None)
