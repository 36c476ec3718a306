"""Graph attention (Velickovic et al. 2018, arXiv:1710.10903)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from edgegrad.torch.functions import FUNCTIONS
from edgegrad.torch.nn.attention import AttentionLayer
from edgegrad.torch.nn.base import Linear, glorot, sides, zeros


class GATConv(AttentionLayer):
    """GAT layer with the arguments and parameters of PyG's `GATConv`.

    Parameters
    ----------
    in_channels, out_channels : int
        Widths; `in_channels` may be a pair, of sources and destinations.
    heads : int
        Heads, each of `out_channels` columns.
    concat : bool
        Set heads side by side, rather than average them.
    negative_slope : float
        Of leaky ReLU.
    dropout : float
        Probability of dropping a coefficient in training.
    add_self_loops : bool
        Replace loops by one for every node.
    edge_dim : int or None
        Width of edge features.
    fill_value : float, Tensor or str
        Edge features of the loops: given, or how those of the edges that enter a node are reduced.
    bias, residual : bool
        Add a bias; the own features times a weight.
    """

    att_src: Any
    att_dst: Any
    att_edge: Any
    bias: Any

    def __init__(
        self,
        in_channels: int | tuple[int, int],
        out_channels: int,
        heads: int = 1,
        concat: bool = True,
        negative_slope: float = 0.2,
        dropout: float = 0.0,
        add_self_loops: bool = True,
        edge_dim: int | None = None,
        fill_value: float | Tensor | str = "mean",
        bias: bool = True,
        residual: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(in_channels, out_channels, heads, concat, dropout, edge_dim, **kwargs)
        self.negative_slope, self.add_self_loops = negative_slope, add_self_loops
        self.fill_value, self.residual = fill_value, residual
        width = heads * out_channels
        self.lin: Any = None
        self.lin_src: Any = None
        self.lin_dst: Any = None
        if isinstance(in_channels, int):
            self.lin = Linear(in_channels, width, bias=False)
        else:
            self.lin_src, self.lin_dst = (Linear(n, width, bias=False) for n in in_channels)
        self._parameter("att_src", 1, heads, out_channels)
        self._parameter("att_dst", 1, heads, out_channels)
        self.lin_edge = None if edge_dim is None else Linear(edge_dim, width, bias=False)
        self._parameter("att_edge", 1, heads, out_channels, given=edge_dim is not None)
        self._add_residual(bias, residual)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all parameters anew."""
        super().reset_parameters()
        for a in (self.att_src, self.att_dst, self.att_edge):
            glorot(a)
        zeros(self.bias)

    def forward(
        self,
        x: Any,
        edge_index: Any,
        edge_attr: Tensor | None = None,
        size: tuple[int, int] | None = None,
        return_attention_weights: bool | None = None,
    ) -> Any:
        """Apply the layer.

        Parameters
        ----------
        x : Tensor (n, in_channels), or a pair for sources and destinations
            The destinations' may be None: they then add nothing to the scores.
        edge_index : Tensor (2, n_edges), or a graph of edgegrad
        edge_attr : Tensor (n_edges, edge_dim), or None
        size : pair of int or None
            Numbers of sources and destinations.
        return_attention_weights : bool or None
            Return ``(edge_index, coefficients)`` too; coefficients are (n_edges, heads).

        Returns
        -------
        Tensor (n_dst, heads * out_channels), or (n_dst, out_channels) if averaged
        """
        src, dst = sides("GATConv", x)
        res = None if self.res is None or dst is None else self.res(dst)
        x_src = (self.lin or self.lin_src)(src)
        if dst is None:
            n_dst = len(src) if size is None else size[1]
            x_dst = x_src.new_zeros(n_dst, x_src.shape[1])
        else:
            shared = dst is src and self.lin is not None
            x_dst = x_src if shared else (self.lin or self.lin_dst)(dst)
        weights = [self.att_src.flatten(), self.att_dst.flatten()]
        edges, edge = self._edges(edge_index, edge_attr, len(src), len(x_dst), size)
        if edge is not None:
            weights.append(self.att_edge.flatten())
        mask = self._mask(edges, x_src)
        asked = bool(return_attention_weights)
        made = FUNCTIONS["mha_gat_n2n"](
            x_src, x_dst, torch.cat(weights), edges.graph, self.heads,
            activation_alpha=self.negative_slope, concat_heads=self.concat,
            edge_embedding=edge, dropout_mask=mask, return_attention=asked,
        )  # fmt: skip
        out, attention = made if asked else (made, None)
        return self._result(out, res, edges, attention)
