"""A layer of graph attention with an explicit forward and backward, GAT or GATv2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from edgegrad.operators import (
    mha_gat_n2n_bwd,
    mha_gat_n2n_fwd,
    mha_gat_v2_n2n_bwd,
    mha_gat_v2_n2n_fwd,
)
from edgegrad.train.adam import Arrays
from edgegrad.train.device import Device
from edgegrad.train.dropout import Dropout
from edgegrad.train.layers import glorot
from edgegrad.train.projection import DenseProjection, SparseProjection

# Forward, backward, and how often the rows of a node are needed: GAT's sources and destinations are
# one projection of the features, those of GATv2 are two (section 3.1 of its paper).
OPERATORS = {
    "gat": (mha_gat_n2n_fwd, mha_gat_n2n_bwd, 1),
    "gatv2": (mha_gat_v2_n2n_fwd, mha_gat_v2_n2n_bwd, 2),
}


@dataclass(frozen=True)
class Heads:
    """Attention heads, side by side or averaged."""

    n: int
    dim: int  # of each
    concat: bool

    @property
    def dim_all(self) -> int:
        """Width of all heads side by side."""
        return self.n * self.dim

    @property
    def dim_out(self) -> int:
        """Width of what a layer gives."""
        return self.dim_all if self.concat else self.dim


class Attention:
    r"""A layer over all nodes of a graph that gives each node an edge from itself.

    .. math:: h'_i = b + \sum_e m_e \alpha_e W x_j, \qquad W = [W_1 | W_2 | \dots]

    with a block for every head, coefficients :math:`\alpha` as told by the operator, and m the
    dropout. Buffers are made once: the operators write into them, epoch after epoch.
    """

    def __init__(
        self,
        model: str,
        graph: Any,
        projection: SparseProjection | DenseProjection,
        dim_in: int,
        heads: Heads,
        device: Device,
    ) -> None:
        self._fwd, self._bwd, self.n_ends = OPERATORS[model]
        self.graph, self.projection, self.device = graph, projection, device
        self.dim_in, self.heads, n_nodes = dim_in, heads, graph.n_dst_nodes
        self.dim_weights = heads.dim_all * (2 if model == "gat" else 1)
        self.output = device.empty(n_nodes, heads.dim_out)
        self.stats = device.empty(2, n_nodes, heads.n)
        self.grad_rows = device.empty(n_nodes, heads.dim_all * self.n_ends)
        self.grad_attention = device.empty(self.dim_weights)

    def initialise(self, rng: np.random.Generator) -> Arrays:
        """Draw new parameters and return them by name."""
        shape, dim = (self.dim_in, self.grad_rows.shape[1]), self.heads.dim
        self.weight = self.device.array(glorot(rng, shape, self.dim_in, dim))
        self.attention = self.device.array(glorot(rng, (self.dim_weights,), dim, 1))
        self.bias = self.device.array(np.zeros(self.heads.dim_out))
        return {"weight": self.weight, "attention": self.attention, "bias": self.bias}

    def forward(self, input: Any, dropout: Dropout | None) -> Any:
        """Return a row for each node."""
        self.ends = self._ends(self.projection.forward(input, self.weight, dropout))
        self.options: dict[str, Any] = {"concat_heads": self.heads.concat}
        if dropout:
            self.options |= {"dropout_p": dropout.p, "dropout_seed": dropout.seed()}
        self._fwd(
            self.output,
            self.stats,
            *self.ends,
            self.attention,
            self.graph,
            self.heads.n,
            **self.options,
        )
        return self.output + self.bias

    def backward(self, grad_output: Any) -> tuple[Any, Arrays]:
        """Return the gradient for the input, if it has one, and those for the parameters."""
        self._bwd(
            *self._ends(self.grad_rows),
            self.grad_attention,
            grad_output,
            *self.ends,
            self.attention,
            self.output,
            self.stats,
            self.graph,
            self.heads.n,
            **self.options,
        )
        grad_input, grad_weight = self.projection.backward(self.grad_rows)
        grads = {
            "weight": grad_weight,
            "attention": self.grad_attention,
            "bias": grad_output.sum(axis=0),
        }
        return grad_input, grads

    def _ends(self, rows: Any) -> tuple[Any, Any]:
        # Halves of one array, not copies: operators take rows that are apart.
        dim = self.heads.dim_all
        return rows[:, :dim], rows[:, dim:] if self.n_ends == 2 else None
