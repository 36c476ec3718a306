"""What the layers of attention share."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from edgegrad.errors import wrong_type
from edgegrad.torch.nn.base import Layer, Linear, dropout_mask, pair
from edgegrad.torch.nn.edges import Edges, edges_of


class AttentionLayer(Layer):
    """A layer of attention heads, with dropout of coefficients and edge features."""

    add_self_loops: bool = False
    fill_value: float | Tensor | str = "mean"
    lin_edge: nn.Module | None
    res: Any

    def __init__(
        self,
        in_channels: int | tuple[int, int],
        out_channels: int,
        heads: int,
        concat: bool,
        dropout: float,
        edge_dim: int | None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.in_channels, self.out_channels = in_channels, out_channels
        self.heads, self.concat = heads, concat
        self.dropout, self.edge_dim = dropout, edge_dim

    def _add_residual(self, bias: bool, residual: bool) -> None:
        """Add the parameters of what is added to the output."""
        width = self.out_channels * (self.heads if self.concat else 1)
        self.res = Linear(pair(self.in_channels)[1], width, bias=False) if residual else None
        self._parameter("bias", width, given=bias)

    def _edges(
        self, edge_index: Any, edge_attr: Tensor | None, n_src: int, n_dst: int, size: Any = None
    ) -> tuple[Edges, Tensor | None]:
        """Return the edges, with loops if they are added, and their transformed features."""
        where = type(self).__name__
        n_src, n_dst = (n_src, n_dst) if size is None else size
        loops = "new" if self.add_self_loops else ""
        edges = edges_of(where, edge_index, n_src, n_dst, loops)
        if edge_attr is None or self.lin_edge is None:
            return edges, None
        edge_attr = edge_attr if edge_attr.dim() > 1 else edge_attr[:, None]
        if loops:
            inner = None
            if isinstance(self.fill_value, str):
                inner = edges_of(where, edge_index[:, edges.kept], n_src, n_dst).graph
            edge_attr = edges.attributes(edge_attr, self.fill_value, inner)
        return edges, self.lin_edge(edge_attr)

    def _edge_features_fit(self, edge_attr: Tensor | None) -> None:
        if edge_attr is not None and self.lin_edge is None:
            where = type(self).__name__
            raise wrong_type(where, "edge_attr", "a tensor", "None, since `edge_dim` is None")

    def _mask(self, edges: Edges, like: Tensor) -> Tensor | None:
        return dropout_mask(self.dropout, self.training, self.heads, edges.n, like)

    def _result(
        self, out: Tensor, res: Tensor | None, edges: Edges, attention: Tensor | None
    ) -> Any:
        """Add what is added to the output; return the coefficients too if they are given."""
        out = out if res is None else out + res
        bias = getattr(self, "bias", None)
        out = out if bias is None else out + bias
        return out if attention is None else (out, (edges.edge_index, attention.t()))
