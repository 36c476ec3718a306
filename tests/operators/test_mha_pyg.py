"""The layers of PyTorch Geometric, with their weights copied over, give the same numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import edgegrad.operators as ops
import graphs
from devices import Host
from reference.attention import edge_ids

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
nn = pytest.importorskip("torch_geometric.nn", reason="PyTorch Geometric is not installed")

HEADS, WIDTH, IN, EDGE = 3, 4, 5, 6
OPTIONS = pytest.mark.parametrize("concat", [True, False], ids=["concat", "mean"])
SIDES = pytest.mark.parametrize("bipartite", [False, True], ids=["homogeneous", "bipartite"])
EDGES = pytest.mark.parametrize("edges", [False, True], ids=["", "edges"])


class Data:
    """A graph in the caller's order of edges, and features, in float64."""

    def __init__(self, bipartite: bool, edges: bool) -> None:
        self.graph = graphs.make("bipartite" if bipartite else "power_law")
        ids = edge_ids(self.graph)
        by_id = np.empty((2, self.graph.n_edges), np.int64)
        by_id[:, ids] = self.graph.indices, self.graph.destinations
        self.edge_index = torch.tensor(by_id)
        generator = torch.Generator().manual_seed(1)

        def normal(*shape: int) -> Any:
            return torch.randn(*shape, generator=generator, dtype=torch.float64)

        x = normal(self.graph.n_src, IN)
        self.x = (x, normal(self.graph.n_dst, IN)) if bipartite else x
        self.edge_attr = normal(self.graph.n_edges, EDGE) if edges else None
        self.struct = self.graph.make(Host(), kind="csc")

    def layer(self, make: Any, concat: bool, **options: Any) -> Any:
        torch.manual_seed(2)
        layer = make(
            (IN, IN) if isinstance(self.x, tuple) else IN, WIDTH, heads=HEADS, concat=concat,
            edge_dim=None if self.edge_attr is None else EDGE, bias=False, **options,
        )  # fmt: skip
        return layer.double().eval()

    @property
    def ends(self) -> tuple[Any, Any]:
        return self.x if isinstance(self.x, tuple) else (self.x, self.x)

    def edge(self, linear: Any) -> Any:
        return None if self.edge_attr is None else linear(self.edge_attr).detach()

    def compare(self, layer: Any, forward: Any, arrays: dict[str, Any], concat: bool) -> None:
        expected = layer(self.x, self.edge_index, self.edge_attr)
        out = np.full(expected.shape, np.nan)
        forward(out, None, **arrays, graph=self.struct, num_heads=HEADS, concat_heads=concat)
        np.testing.assert_allclose(out, expected.detach().numpy(), rtol=1e-12, atol=1e-12)


@OPTIONS
@SIDES
@EDGES
def test_gat_conv(concat: bool, bipartite: bool, edges: bool) -> None:
    data = Data(bipartite, edges)
    layer = data.layer(nn.GATConv, concat, add_self_loops=False)
    x, y = data.ends
    to_src = layer.lin if layer.lin is not None else layer.lin_src
    to_dst = layer.lin if layer.lin is not None else layer.lin_dst
    weights = [layer.att_src, layer.att_dst, *([layer.att_edge] if edges else [])]
    arrays = {
        "src_embedding": to_src(x).detach(),
        "dst_embedding": to_dst(y).detach() if bipartite else None,
        "attn_weights": torch.cat([w.detach().flatten() for w in weights]),
        "edge_embedding": data.edge(layer.lin_edge),
    }
    data.compare(layer, ops.mha_gat_n2n_fwd, arrays, concat)


@OPTIONS
@SIDES
@EDGES
def test_gat_v2_conv(concat: bool, bipartite: bool, edges: bool) -> None:
    data = Data(bipartite, edges)
    layer = data.layer(nn.GATv2Conv, concat, add_self_loops=False)
    x, y = data.ends
    arrays = {
        "src_embedding": layer.lin_l(x).detach(),
        "dst_embedding": layer.lin_r(y).detach(),
        "attn_weights": layer.att.detach().flatten(),
        "edge_embedding": data.edge(layer.lin_edge),
    }
    data.compare(layer, ops.mha_gat_v2_n2n_fwd, arrays, concat)


@OPTIONS
@SIDES
@EDGES
def test_transformer_conv(concat: bool, bipartite: bool, edges: bool) -> None:
    data = Data(bipartite, edges)
    layer = data.layer(nn.TransformerConv, concat, root_weight=False)
    x, y = data.ends
    arrays = {
        "query": layer.lin_query(y).detach(),
        "key": layer.lin_key(x).detach(),
        "value": layer.lin_value(x).detach(),
        "edge_embedding": data.edge(layer.lin_edge),
    }
    data.compare(layer, ops.mha_simple_n2n_fwd, arrays, concat)
