"""GraphSAGE (Hamilton et al. 2017, arXiv:1706.02216)."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.nn import Linear, functional

from edgegrad.torch.functions import FUNCTIONS
from edgegrad.torch.nn.base import Layer, pair, sides
from edgegrad.torch.nn.edges import edges_of


class SAGEConv(Layer):
    """GraphSAGE layer with the arguments and parameters of PyG's `SAGEConv`.

    Parameters
    ----------
    in_channels, out_channels : int
        Widths; `in_channels` may be a pair, of sources and destinations.
    aggr : str
        "mean", "sum", "min" or "max".
    normalize : bool
        Scale rows of the result to length 1.
    root_weight, bias : bool
        Add the own features times a weight; a bias.
    project : bool
        Pass the sources' features through a linear map and ReLU first.
    """

    _reductions = ("mean", "add", "sum", "min", "max")

    def __init__(
        self,
        in_channels: int | tuple[int, int],
        out_channels: int,
        aggr: str = "mean",
        normalize: bool = False,
        root_weight: bool = True,
        project: bool = False,
        bias: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(aggr, **kwargs)
        self.in_channels, self.out_channels = in_channels, out_channels
        self.normalize, self.root_weight, self.project = normalize, root_weight, project
        n_src, n_dst = pair(in_channels)
        if project:
            self.lin = Linear(n_src, n_src, bias=True)
        self.lin_l = Linear(n_src, out_channels, bias=bias)
        if root_weight:
            self.lin_r = Linear(n_dst, out_channels, bias=False)
        self.reset_parameters()

    def forward(self, x: Any, edge_index: Any, size: tuple[int, int] | None = None) -> Tensor:
        """Apply the layer.

        Parameters
        ----------
        x : Tensor (n, in_channels), or a pair for sources and destinations
            The destinations' may be None: they are then not added.
        edge_index : Tensor (2, n_edges), or a graph of edgegrad
        size : pair of int or None
            Numbers of sources and destinations.

        Returns
        -------
        Tensor (n_dst, out_channels)
        """
        src, dst = sides("SAGEConv", x)
        n_src, n_dst = size or (len(src), len(src if dst is None else dst))
        edges = edges_of("SAGEConv", edge_index, n_src, n_dst)
        src = self.lin(src).relu() if self.project else src
        out = self.lin_l(FUNCTIONS["agg_simple_n2n"](src, edges.graph, self.aggr))
        if self.root_weight and dst is not None:
            out = out + self.lin_r(dst)
        return functional.normalize(out, p=2.0, dim=-1) if self.normalize else out
