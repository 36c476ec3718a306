"""The two layers of an R-GCN, each with an explicit forward and backward.

Schlichtkrull et al. 2018 (arXiv:1703.06103), equations 2 and 3, without bias as in the authors'
code. Sums over neighbours are `agg_hg_basis_n2n_post_fwd` and `_bwd`, everything else is one
matrix product. All buffers are made once: the operators write into them, epoch after epoch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgegrad import from_coo
from edgegrad.datasets import EntityGraph
from edgegrad.operators import agg_hg_basis_n2n_post_bwd, agg_hg_basis_n2n_post_fwd
from edgegrad.train.device import Device

Arrays = dict[str, Any]


@dataclass(frozen=True)
class Messages:
    """Who hears from whom: every triple, its inverse, and every entity from itself."""

    src: NDArray[np.int32]
    dst: NDArray[np.int32]
    relation: NDArray[np.int32]
    n_entities: int
    n_relations: int  # 2 R + 1 for R relations in the data

    @classmethod
    def of(cls, data: EntityGraph) -> Messages:
        """Number the relations 0 to R - 1, their inverses R to 2 R - 1, and the self relation."""
        subjects, objects = data.edge_index
        every = np.arange(data.n_entities, dtype=np.int32)
        n, kind = data.n_relations, data.edge_type
        return cls(
            src=np.concatenate([subjects, objects, every]),
            dst=np.concatenate([objects, subjects, every]),
            relation=np.concatenate([kind, kind + n, np.full_like(every, 2 * n)]),
            n_entities=data.n_entities,
            n_relations=2 * n + 1,
        )


def glorot(rng: np.random.Generator, shape: tuple[int, ...], fan_in: int, fan_out: int) -> NDArray:
    """Draw from the uniform distribution of Glorot and Bengio 2010, equation 16."""
    limit = (6 / (fan_in + fan_out)) ** 0.5
    return rng.uniform(-limit, limit, shape)


class NodeTables:
    r"""The first layer, for entities without features: what they are is learnt.

    .. math:: h_i = \sum_r c_{ir} \sum_{j \in N_r(i)} V_r[j], \qquad V_r = \sum_b a_{rb} V_b

    With bases the tables :math:`V_b` have a row per entity, and the sum over b is one call of the
    operator for each. Without bases there is a single table with a row for each pair (relation,
    source) that occurs, which are the source nodes of a bipartite graph; a row of :math:`V_r` that
    no message reads would never change and is not kept.
    """

    def __init__(self, messages: Messages, dim: int, n_bases: int, device: Device) -> None:
        self.device, self.n_bases, n = device, n_bases, messages.n_entities
        self.n_entities, self.n_relations = n, messages.n_relations
        src, n_rows = messages.src, n
        if not n_bases:
            pairs = messages.relation.astype(np.int64) * n + src
            occurring, src = np.unique(pairs, return_inverse=True)
            n_rows = len(occurring)
        self.graph = device.graph(
            from_coo(
                src.astype(np.int32),
                messages.dst,
                n_rows,
                n,
                edge_types=messages.relation,
                n_edge_types=messages.n_relations,
                bipartite=not n_bases,
            )
        )
        n_tables = max(1, n_bases)
        self.output, self.part = device.empty(n, dim), device.empty(n, dim)
        self.grad_tables = device.empty(n_tables, n_rows, dim)
        self.grad_shares = device.empty(n_tables, messages.n_relations, 1)

    def initialise(self, rng: np.random.Generator) -> Arrays:
        """Draw new parameters and return them by name."""
        shape, n_relations = self.grad_tables.shape, self.n_relations
        self.tables = self.device.array(glorot(rng, shape, self.n_entities, shape[2]))
        if not self.n_bases:
            self.shares = self.device.array(np.ones((1, n_relations, 1)))
            return {"tables": self.tables}
        shares = glorot(rng, (self.n_bases, n_relations, 1), n_relations, self.n_bases)
        self.shares = self.device.array(shares)
        return {"tables": self.tables, "shares": self.shares}

    def forward(self) -> Any:
        """Return a row for every entity; the buffer is written again by the next call."""
        for b, (table, shares) in enumerate(zip(self.tables, self.shares, strict=True)):
            written = self.part if b else self.output
            agg_hg_basis_n2n_post_fwd(written, table, shares, self.graph, norm_by_out_degree=True)
            if b:
                self.output += self.part
        return self.output

    def backward(self, grad_output: Any) -> Arrays:
        """Return the gradients for the parameters."""
        for b, (table, shares) in enumerate(zip(self.tables, self.shares, strict=True)):
            agg_hg_basis_n2n_post_bwd(
                self.grad_tables[b],
                self.grad_shares[b] if self.n_bases else None,
                grad_output,
                table,
                shares,
                self.graph,
                norm_by_out_degree=True,
            )
        grads = {"tables": self.grad_tables}
        return grads | {"shares": self.grad_shares} if self.n_bases else grads


class Convolution:
    r"""A layer on features, for the entities whose output somebody reads.

    .. math:: h'_i = \sum_r W_r\, c_{ir} \sum_{j \in N_r(i)} h_j, \qquad W_r = \sum_b a_{rb} W_b

    The operator sums the neighbours per relation, or per basis, next to each other; the matrices
    then are one tall one. The cost of the sum does not depend on the width of the output.
    """

    def __init__(
        self,
        messages: Messages,
        wanted: NDArray[np.int32],
        dim: int,
        dim_out: int,
        n_bases: int,
        device: Device,
    ) -> None:
        self.device, self.n_bases, self.n_relations = device, n_bases, messages.n_relations
        self.dim, self.dim_out, self.n_blocks = dim, dim_out, n_bases or messages.n_relations
        row_of = np.full(messages.n_entities, -1, dtype=np.int32)
        row_of[wanted] = np.arange(len(wanted), dtype=np.int32)
        heard = row_of[messages.dst] >= 0
        self.graph = device.graph(
            from_coo(
                messages.src[heard],
                row_of[messages.dst[heard]],
                messages.n_entities,
                len(wanted),
                edge_types=messages.relation[heard],
                n_edge_types=messages.n_relations,
                bipartite=True,
            )
        )
        self.sums = device.empty(len(wanted), self.n_blocks * dim)
        self.grad_input = device.empty(messages.n_entities, dim)
        self.grad_shares = device.empty(messages.n_relations, n_bases) if n_bases else None

    def initialise(self, rng: np.random.Generator) -> Arrays:
        """Draw new parameters and return them by name."""
        shape = (self.n_blocks * self.dim, self.dim_out)
        self.weight = self.device.array(glorot(rng, shape, self.dim, self.dim_out))
        self.shares = None
        if not self.n_bases:
            return {"weight": self.weight}
        shares = glorot(rng, (self.n_relations, self.n_bases), self.n_relations, self.n_bases)
        self.shares = self.device.array(shares)
        return {"weight": self.weight, "shares": self.shares}

    def forward(self, input: Any) -> Any:
        """Return a row for every entity that is wanted; `input` is kept for backward."""
        self.input = input
        agg_hg_basis_n2n_post_fwd(
            self.sums, input, self.shares, self.graph, norm_by_out_degree=True
        )
        return self.sums @ self.weight

    def backward(self, grad_output: Any) -> tuple[Any, Arrays]:
        """Return the gradient for the input and those for the parameters."""
        agg_hg_basis_n2n_post_bwd(
            self.grad_input,
            self.grad_shares,
            grad_output @ self.weight.T,
            self.input,
            self.shares,
            self.graph,
            norm_by_out_degree=True,
        )
        grads = {"weight": self.sums.T @ grad_output}
        return self.grad_input, grads | {"shares": self.grad_shares} if self.n_bases else grads
