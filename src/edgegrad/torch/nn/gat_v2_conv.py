"""Graph attention of the second kind (Brody et al. 2022, arXiv:2105.14491)."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from edgegrad.errors import wrong_type
from edgegrad.torch.functions import FUNCTIONS
from edgegrad.torch.nn.attention import AttentionLayer
from edgegrad.torch.nn.base import Linear, glorot, pair, sides, zeros


class GATv2Conv(AttentionLayer):
    """GATv2 layer with the arguments and parameters of PyG's `GATv2Conv`.

    Parameters are those of `GATConv`, and

    Parameters
    ----------
    share_weights : bool
        Transform sources and destinations by the same weight.
    """

    att: Any
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
        share_weights: bool = False,
        residual: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(in_channels, out_channels, heads, concat, dropout, edge_dim, **kwargs)
        self.negative_slope, self.add_self_loops = negative_slope, add_self_loops
        self.fill_value, self.residual, self.share_weights = fill_value, residual, share_weights
        width, (n_src, n_dst) = heads * out_channels, pair(in_channels)
        self.lin_l = Linear(n_src, width, bias=bias)
        self.lin_r = self.lin_l if share_weights else Linear(n_dst, width, bias=bias)
        self._parameter("att", 1, heads, out_channels)
        self.lin_edge = None if edge_dim is None else Linear(edge_dim, width, bias=False)
        self._add_residual(bias, residual)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all parameters anew."""
        super().reset_parameters()
        glorot(self.att)
        zeros(self.bias)

    def forward(
        self,
        x: Any,
        edge_index: Any,
        edge_attr: Tensor | None = None,
        return_attention_weights: bool | None = None,
    ) -> Any:
        """Apply the layer; arguments and result are those of `GATConv`."""
        src, dst = sides("GATv2Conv", x)
        if dst is None:
            raise wrong_type("GATv2Conv", "x", "None for destinations", "their features")
        self._edge_features_fit(edge_attr)
        res = None if self.res is None else self.res(dst)
        x_l = self.lin_l(src)
        x_r = x_l if dst is src and self.share_weights else self.lin_r(dst)
        edges, edge = self._edges(edge_index, edge_attr, len(src), len(dst))
        mask = self._mask(edges, x_l)
        asked = bool(return_attention_weights)
        made = FUNCTIONS["mha_gat_v2_n2n"](
            x_l, x_r, self.att.flatten(), edges.graph, self.heads,
            activation_alpha=self.negative_slope, concat_heads=self.concat,
            edge_embedding=edge, dropout_mask=mask, return_attention=asked,
        )  # fmt: skip
        out, attention = made if asked else (made, None)
        return self._result(out, res, edges, attention)
