"""Attention by dot products (Shi et al. 2021, arXiv:2009.03509)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import Linear

from edgegrad.errors import wrong_type
from edgegrad.torch.functions import FUNCTIONS
from edgegrad.torch.nn.attention import AttentionLayer
from edgegrad.torch.nn.base import pair, sides


class TransformerConv(AttentionLayer):
    """Transformer layer with the arguments and parameters of PyG's `TransformerConv`.

    Parameters
    ----------
    in_channels, out_channels : int
        Widths; `in_channels` may be a pair, of sources and destinations.
    heads : int
        Heads, each of `out_channels` columns.
    concat : bool
        Set heads side by side, rather than average them.
    beta : bool
        Weigh the own features and the attended ones by a learned gate.
    dropout : float
        Probability of dropping a coefficient in training.
    edge_dim : int or None
        Width of edge features, which are added to keys and values.
    bias, root_weight : bool
        Whether maps have a bias; add the own features times a weight.
    """

    def __init__(
        self,
        in_channels: int | tuple[int, int],
        out_channels: int,
        heads: int = 1,
        concat: bool = True,
        beta: bool = False,
        dropout: float = 0.0,
        edge_dim: int | None = None,
        bias: bool = True,
        root_weight: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(in_channels, out_channels, heads, concat, dropout, edge_dim, **kwargs)
        self.beta, self.root_weight = beta and root_weight, root_weight
        width, (n_src, n_dst) = heads * out_channels, pair(in_channels)
        self.lin_key = Linear(n_src, width, bias=bias)
        self.lin_query = Linear(n_dst, width, bias=bias)
        self.lin_value = Linear(n_src, width, bias=bias)
        self.lin_edge = None if edge_dim is None else Linear(edge_dim, width, bias=False)
        own = width if concat else out_channels
        self.lin_skip = Linear(n_dst, own, bias=bias)
        self.lin_beta = Linear(3 * own, 1, bias=False) if self.beta else None
        self.reset_parameters()

    def forward(
        self,
        x: Any,
        edge_index: Any,
        edge_attr: Tensor | None = None,
        return_attention_weights: bool | None = None,
    ) -> Any:
        """Apply the layer.

        Parameters
        ----------
        x : Tensor (n, in_channels), or a pair for sources and destinations
        edge_index : Tensor (2, n_edges), or a graph of edgegrad
        edge_attr : Tensor (n_edges, edge_dim), or None
        return_attention_weights : bool or None
            Return ``(edge_index, coefficients)`` too, as they are before dropout, if it is a bool.

        Returns
        -------
        Tensor (n_dst, heads * out_channels), or (n_dst, out_channels) if averaged
        """
        src, dst = sides("TransformerConv", x)
        if dst is None:
            raise wrong_type("TransformerConv", "x", "None for destinations", "their features")
        self._edge_features_fit(edge_attr)
        if edge_attr is None and self.lin_edge is not None:
            raise wrong_type("TransformerConv", "edge_attr", "type NoneType", "edge features")
        edges, edge = self._edges(edge_index, edge_attr, len(src), len(dst))
        arrays = (self.lin_query(dst), self.lin_key(src), self.lin_value(src), edges.graph)
        attend, mask = FUNCTIONS["mha_simple_n2n"], self._mask(edges, src)
        given = {"concat_heads": self.concat, "edge_embedding": edge}
        asked = isinstance(return_attention_weights, bool)
        dropped = attend(*arrays, self.heads, **given, dropout_mask=mask, return_attention=asked)
        out, attention = dropped if asked else (dropped, None)
        if asked and mask is not None:  # those returned are from before dropout
            _, attention = attend(*arrays, self.heads, **given, return_attention=True)
        if self.root_weight:
            own = self.lin_skip(dst)
            if self.lin_beta is None:
                out = out + own
            else:
                gate = self.lin_beta(torch.cat([out, own, out - own], dim=-1)).sigmoid()
                out = gate * own + (1 - gate) * out
        return self._result(out, None, edges, attention)
