"""Graph convolution (Kipf & Welling 2017, arXiv:1609.02907)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from edgegrad.errors import wrong_option, wrong_type, wrong_value
from edgegrad.torch.functions import FUNCTIONS
from edgegrad.torch.nn.base import Layer, Linear, zeros
from edgegrad.torch.nn.edges import Edges, edges_of, loop_weights


class GCNConv(Layer):
    """GCN layer with the arguments and parameters of PyG's `GCNConv`.

    Parameters
    ----------
    in_channels, out_channels : int
        Widths.
    improved : bool
        Give loops that are added the weight 2 rather than 1, also where edges have no weights.
    cached : bool
        Keep the normalised weights of the first call.
    add_self_loops : bool or None
        Add a loop to every node that has none; None: if `normalize`.
    normalize : bool
        Divide weights by the roots of the degrees of both ends. Degrees are sums of weights: a
        negative one is an error, a node of degree 0 gets nothing.
    bias : bool
        Add a bias.
    """

    bias: Any

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        improved: bool = False,
        cached: bool = False,
        add_self_loops: bool | None = None,
        normalize: bool = True,
        bias: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.in_channels, self.out_channels = in_channels, out_channels
        self.improved, self.cached, self.normalize = improved, cached, normalize
        self.add_self_loops = normalize if add_self_loops is None else add_self_loops
        if self.add_self_loops and not normalize:
            raise wrong_option("GCNConv", "add_self_loops", True, "False without `normalize`")
        self._normalised: tuple[Edges, Tensor] | None = None
        self.lin = Linear(in_channels, out_channels, bias=False)
        self._parameter("bias", out_channels, given=bias)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all parameters anew; forget what is cached."""
        super().reset_parameters()
        zeros(self.bias)
        self._normalised = None

    def forward(self, x: Tensor, edge_index: Any, edge_weight: Tensor | None = None) -> Tensor:
        """Apply the layer.

        Parameters
        ----------
        x : Tensor (n, in_channels)
        edge_index : Tensor (2, n_edges), or a graph of edgegrad
        edge_weight : Tensor (n_edges,), or None
            None: ones.

        Returns
        -------
        Tensor (n, out_channels)
        """
        if not isinstance(x, Tensor):
            raise wrong_type("GCNConv", "x", f"type {type(x).__name__}", "a tensor")
        if self._normalised is not None:
            edges, edge_weight = self._normalised
        else:
            loops = "missing" if self.add_self_loops else ""
            edges = edges_of("GCNConv", edge_index, len(x), len(x), loops)
            if self.normalize:
                edge_weight = self._normalise(edges, edge_index, edge_weight, x)
                if self.cached:
                    self._normalised = (edges, edge_weight)
        out = FUNCTIONS["spmm"](edge_weight, self.lin(x), edges.graph)
        return out if self.bias is None else out + self.bias

    def _normalise(self, edges: Edges, edge_index: Any, weight: Tensor | None, x: Tensor) -> Tensor:
        """Return the weights of all edges over the roots of the degrees of their ends."""
        given = weight
        fill = 2.0 if self.improved else 1.0
        if weight is None:
            n_given = edge_index.shape[1] if isinstance(edge_index, Tensor) else None
            n = edges.n if n_given is None else n_given
            weight = torch.ones(n, dtype=x.dtype, device=x.device)
        if edges.kept is not None:
            loops = loop_weights(edge_index, weight, edges.n_loops, fill)
            weight = torch.cat((weight[edges.kept], loops))
        ones = torch.ones(len(x), 1, dtype=weight.dtype, device=weight.device)
        degree = FUNCTIONS["spmm"](weight, ones, edges.graph)
        if given is not None and not torch.compiler.is_compiling() and bool((degree < 0).any()):
            raise wrong_value("GCNConv", "edge_weight", "a negative degree", "degrees of 0 or more")
        some = degree > 0
        root = torch.where(some, torch.where(some, degree, 1).rsqrt(), 0)
        return weight * FUNCTIONS["sddmm"](root, root, edges.graph)
