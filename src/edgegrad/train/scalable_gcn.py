r"""A GCN of any depth, trained on mini-batches: no batch reads more than its direct neighbours.

.. math:: h^l = \sigma(\hat A h^{l-1} W^l), \qquad
          \hat A = D^{-1/2} (A + I) D^{-1/2} \quad \text{(Kipf and Welling 2017, arXiv:1609.02907)}

Rows of nodes outside the batch are those of earlier steps, from a `HistoryStore`. The gradient for
them cannot flow on in the same step; it comes to them in one of these styles:

- mailbox (Euler): it is added up in the store, and taken out when the node is itself in a batch;
- snapshot (LMC, arXiv:2302.00924): the gradient of each product :math:`\hat A (h W)` is stored, and
  a batch reads those of its neighbours, who in an undirected graph are also its readers;
- none: it is lost (GNNAutoScale, arXiv:2106.05609).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from edgegrad import HistoryStore, batches, from_coo
from edgegrad.datasets import NodeGraph
from edgegrad.train.device import Device
from edgegrad.train.dropout import Dropout
from edgegrad.train.layers import glorot
from edgegrad.train.loss import cross_entropy
from edgegrad.train.scalable_gcn_piece import Piece

Arrays = dict[str, Any]
GRADIENTS = ("mailbox", "snapshot", "none")


@dataclass(frozen=True)
class Settings:
    """Those of Kipf and Welling's paper, and how batches are made."""

    layers: int = 2
    hidden: int = 16
    neighbours: str = "fresh"
    gradients: str = "mailbox"
    dropout: float = 0.5
    l2: float = 5e-4


class ScalableGCN:
    """The model, its store, and one step of training."""

    def __init__(self, data: NodeGraph, settings: Settings, device: Device, parts: Any) -> None:
        self.data, self.settings, self.device = data, settings, device
        # Batches are made once, so that all seeds have the same split.
        self.split = data.split(np.random.default_rng(0))
        n, train = data.n_nodes, self.split["train"]
        loops = np.arange(n, dtype=np.int32)
        src, dst = (np.concatenate([side, loops]) for side in data.edge_index)
        types = np.zeros(len(src), np.int32)
        graph = from_coo(src, dst, n, edge_types=types, n_edge_types=1)
        degree = np.diff(np.asarray(graph.offsets))
        to = np.repeat(loops, degree)
        scale = degree**-0.5
        weight = scale[to] * scale[np.asarray(graph.indices)]
        cut = batches(graph, parts, neighbours=settings.neighbours)
        self.pieces = [Piece(b, weight, data, train, device) for b in cut]
        (everything,) = batches(graph, np.zeros(n, np.int64))
        self.whole = Piece(everything, weight, data, train, device)
        self.clear()

    def clear(self) -> None:
        """Forget the rows of earlier steps."""
        s, n, dtype = self.settings, self.data.n_nodes, str(self.device.dtype)
        place = self.device.name
        inner, mailbox = s.layers - 1, s.gradients == "mailbox"
        self.store = HistoryStore(n, s.hidden, inner, dtype, grad=mailbox, device=place)
        self.snapshots: list[tuple[HistoryStore, int]] = []
        if s.gradients == "snapshot" and inner:
            hidden = HistoryStore(n, s.hidden, max(0, inner - 1), dtype, grad=False, device=place)
            last = HistoryStore(n, self.data.n_classes, 1, dtype, grad=False, device=place)
            self.snapshots = [(hidden, layer) for layer in range(inner - 1)] + [(last, 0)]

    @property
    def store_bytes(self) -> int:
        """Bytes of rows and gradients of earlier steps."""
        stores = {id(store): store for store, _ in self.snapshots} | {0: self.store}
        return sum(store.nbytes for store in stores.values())

    def initialise(self, rng: np.random.Generator) -> Arrays:
        """Draw new parameters and return them by name; the optimiser changes them in place."""
        s = self.settings
        widths = [self.data.features.n_columns, *[s.hidden] * (s.layers - 1), self.data.n_classes]
        self.params = {
            f"weight{i}": self.device.array(glorot(rng, shape, *shape))
            for i, shape in enumerate(itertools.pairwise(widths))
        }
        return self.params

    def evaluate(self) -> Any:
        """Return the logits of all nodes, from the whole graph and without a store."""
        whole, (first, *others) = self.whole, self.params.values()
        h = whole.spread(whole.features_sum.forward(first, whole.features))
        for weight in others:
            h = whole.spread(np.maximum(h, 0) @ weight)
        return h

    def step(self, piece: Piece, dropout: Dropout | None = None) -> tuple[float, Arrays]:
        """Return loss and gradients of a batch; the order of what is done here matters."""
        taken = self.take(piece)
        pulled = self.pull(piece)
        inputs, masks, products = self._forward(piece, pulled, dropout)
        loss, grad = cross_entropy(products[-1], piece.targets, piece.counts)
        grads, sent = self._backward(piece, grad, taken, inputs, masks, products)
        self.send(piece, sent)
        for layer, product in enumerate(products[:-1]):
            # Rows of one node may differ in their last bits, by their place in the batch.
            self.store.push(layer, piece.own, np.maximum(product, 0), duplicates="last")
        return loss, grads

    def take(self, piece: Piece) -> Sequence[Any]:
        """Return what earlier steps left for the rows of each inner layer."""
        inner, gradients = range(self.settings.layers - 1), self.settings.gradients
        if gradients == "mailbox":
            return [self.store.take_grad(layer, piece.own) for layer in inner]
        if gradients == "none":
            return [0.0] * len(inner)
        taken = []
        for layer, (store, at) in enumerate(self.snapshots):
            stored = store.pull(at, piece.neighbours)
            live = self.device.xp.zeros((piece.n_own, store.dim), self.device.dtype)
            heard = piece.first * piece.spread(self.device.xp.concatenate([live, stored]))
            taken.append(heard @ self.params[f"weight{layer + 1}"].T)
        return taken

    def pull(self, piece: Piece) -> list[Any]:
        """Return the neighbours' rows of each inner layer."""
        return [self.store.pull(i, piece.neighbours) for i in range(self.settings.layers - 1)]

    def send(self, piece: Piece, sent: Iterable[tuple[int, Any, Any]]) -> None:
        """Leave gradients for later: those of pulled rows, or of the batch's own products."""
        for layer, grad_pulled, grad_product in sent:
            if self.settings.gradients == "mailbox":
                self.store.accumulate_grad(layer, piece.neighbours, grad_pulled)
            elif self.settings.gradients == "snapshot":
                store, at = self.snapshots[layer]
                # The first of a repeated id has the gradient: it comes last here.
                store.push(at, piece.own[::-1].copy(), grad_product[::-1].copy(), duplicates="last")

    def _forward(
        self, piece: Piece, pulled: list[Any], dropout: Dropout | None
    ) -> tuple[list[Any], list[Any], list[Any]]:
        first, *others = self.params.values()
        masks = [dropout.factors(*piece.features.shape) if dropout else 1]
        inputs = [piece.features * masks[0]]
        products = [piece.spread(piece.features_sum.forward(first, inputs[0]))]
        for weight, stored in zip(others, pulled, strict=True):
            rows = self.device.xp.concatenate([np.maximum(products[-1], 0), stored])
            masks.append(dropout.factors(*rows.shape) if dropout else 1)
            inputs.append(rows * masks[-1])
            products.append(piece.spread(inputs[-1] @ weight))
        return inputs, masks, products

    def _backward(
        self,
        piece: Piece,
        grad: Any,
        taken: Sequence[Any],
        inputs: list[Any],
        masks: list[Any],
        products: list[Any],
    ) -> tuple[Arrays, list[tuple[int, Any, Any]]]:
        """Return gradients of the parameters, and (layer, of pulled rows, of own products)."""
        grads, sent = {}, []
        for i in reversed(range(len(products))):
            name, back = f"weight{i}", piece.gather(grad)
            if i == 0:
                grads[name] = piece.features_sum.backward(back, inputs[0])
                break
            grads[name] = inputs[i].T @ back
            grad_rows = back @ self.params[name].T * masks[i]
            sent.append((i - 1, grad_rows[piece.n_own :], grad))
            grad = (grad_rows[: piece.n_own] + taken[i - 1]) * (products[i - 1] > 0)
        if self.settings.l2:
            share = self.settings.l2 / len(self.pieces)
            grads["weight0"] += share * self.params["weight0"]
        return {name: grads[name] for name in self.params}, sent
