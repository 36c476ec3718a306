"""Relational graph convolution (Schlichtkrull et al. 2018, arXiv:1703.06103)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from edgegrad.errors import wrong_option, wrong_type
from edgegrad.torch.functions import FUNCTIONS
from edgegrad.torch.nn.base import Layer, glorot, pair, zeros
from edgegrad.torch.nn.edges import Edges, edges_of


class RGCNConv(Layer):
    """R-GCN layer with the arguments and parameters of PyG's `RGCNConv`.

    Parameters
    ----------
    in_channels, out_channels : int
        Widths; `in_channels` may be a pair, of sources and destinations.
    num_relations : int
        Number of edge types.
    num_bases, num_blocks : int or None
        Basis, or block-diagonal, decomposition of the weights.
    aggr : str
        "mean" (by edge type) or "sum".
    root_weight, bias : bool
        Add the own features times a weight; a bias.
    is_sorted : bool
        Accepted: edges may be in any order.
    """

    _reductions = ("mean", "add", "sum")

    weight: Any
    comp: Any
    root: Any
    bias: Any

    def __init__(
        self,
        in_channels: int | tuple[int, int],
        out_channels: int,
        num_relations: int,
        num_bases: int | None = None,
        num_blocks: int | None = None,
        aggr: str = "mean",
        root_weight: bool = True,
        is_sorted: bool = False,
        bias: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(aggr, **kwargs)
        where = "RGCNConv"
        if num_bases is not None and num_blocks is not None:
            raise wrong_option(where, "num_blocks", num_blocks, "None, since `num_bases` is given")
        if num_bases is not None and num_bases < 1:
            raise wrong_option(where, "num_bases", num_bases, "at least 1")
        self.in_channels, self.out_channels = in_channels, out_channels
        self.num_relations, self.is_sorted = num_relations, is_sorted
        self.num_bases, self.num_blocks = num_bases, num_blocks
        n_src, n_dst = pair(in_channels)
        self.in_channels_l = n_src
        if num_blocks is not None:
            if num_blocks < 1 or n_src % num_blocks or out_channels % num_blocks:
                expected = f"a divisor of in_channels={n_src} and out_channels={out_channels}"
                raise wrong_option(where, "num_blocks", num_blocks, expected)
            block = (n_src // num_blocks, out_channels // num_blocks)
            self._parameter("weight", num_relations, num_blocks, *block)
        else:
            self._parameter("weight", num_bases or num_relations, n_src, out_channels)
        self._parameter("comp", num_relations, num_bases or 0, given=num_bases is not None)
        self._parameter("root", n_dst, out_channels, given=root_weight)
        self._parameter("bias", out_channels, given=bias)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all parameters anew."""
        for a in (self.weight, self.comp, self.root):
            glorot(a)
        zeros(self.bias)

    def forward(self, x: Any, edge_index: Any, edge_type: Tensor | None = None) -> Tensor:
        """Apply the layer.

        Parameters
        ----------
        x : Tensor (n, in_channels), or a pair for sources and destinations
            Integers (n,) are rows of the weights, for nodes without features; None is all of them.
        edge_index : Tensor (2, n_edges), or a graph with edge types
        edge_type : Tensor (n_edges,)
            Not needed beside a graph.

        Returns
        -------
        Tensor (n_dst, out_channels)
        """
        x_l, x_r = x if isinstance(x, tuple) else (x, x)
        if x_l is None:
            x_l = torch.arange(self.in_channels_l, device=self.weight.device)
            x_r = x_l if x_r is None else x_r
        if edge_type is None and isinstance(edge_index, Tensor):
            raise wrong_type("RGCNConv", "edge_type", "type NoneType", "a tensor (n_edges,)")
        edges = edges_of(
            "RGCNConv", edge_index, len(x_l), len(x_r), "", edge_type, self.num_relations
        )
        if x_l.is_floating_point():
            out = self._aggregate(x_l, edges)
        else:
            out = self._aggregate_rows(x_l, edges, edge_index, edge_type)
        if self.root is not None:
            out = out + (x_r @ self.root if x_r.is_floating_point() else self.root[x_r])
        return out if self.bias is None else out + self.bias

    def _aggregate(self, x: Tensor, edges: Edges) -> Tensor:
        mean = self.aggr == "mean"
        basis = FUNCTIONS["agg_hg_basis_n2n_post"]
        sums = basis(x, self.comp, edges.graph, norm_by_out_degree=mean)
        if self.num_blocks is None:
            return sums @ self.weight.reshape(-1, self.out_channels)
        blocks = sums.view(len(sums), self.num_relations, self.num_blocks, -1)
        return torch.einsum("nrbi,rbio->nbo", blocks, self.weight).flatten(1)

    def _aggregate_rows(
        self, ids: Tensor, edges: Edges, edge_index: Any, edge_type: Tensor | None
    ) -> Tensor:
        """Aggregate rows of the weights: features that are all 0 but for a 1."""
        where = "RGCNConv"
        if self.num_blocks is not None:
            raise wrong_type(where, "x", "integers", "features, since `num_blocks` is given")
        if edge_type is None:
            raise wrong_type(where, "edge_index", "a graph", "a tensor, since `x` has integers")
        weight = self.weight
        if self.comp is not None:
            weight = (self.comp @ weight.flatten(1)).view(self.num_relations, *weight.shape[1:])
        rows = weight[edge_type, ids[edge_index[0]]]
        if self.aggr == "mean":
            group = edge_index[1] * self.num_relations + edge_type
            n = edges.graph.n_dst_nodes * self.num_relations
            rows = rows / torch.bincount(group, minlength=n)[group].to(rows)[:, None]
        return FUNCTIONS["agg_simple_e2n"](rows, edges.graph)
