r"""GCN and SAGE of any depth, trained on batches that read no more than their direct neighbours.

.. math:: h^l = \sigma(\hat A h^{l-1} W^l), \qquad
          \hat A = D^{-1/2} (A + I) D^{-1/2} \quad \text{(Kipf and Welling 2017, arXiv:1609.02907)}

.. math:: h^l = \sigma(D^{-1} A h^{l-1} W^l + h^{l-1} V^l) \quad
          \text{(Hamilton et al. 2017, arXiv:1706.02216, mean aggregator)}

V stands at the right of W, in one matrix.

Rows of nodes outside the batch are those of earlier steps, from a `HistoryStore`. The gradient for
them cannot flow on in the same step; it comes to them in one of these styles:

- mailbox (Euler): it is added up in the store, and taken out when the node is itself in a batch;
- snapshot (LMC, arXiv:2302.00924): the gradient of each output before sigma is stored, and
  a batch reads those of its neighbours, who in an undirected graph are also its readers;
- none: it is lost (GNNAutoScale, arXiv:2106.05609).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from edgegrad import HistoryStore, batches
from edgegrad.datasets import NodeGraph
from edgegrad.train.device import Device
from edgegrad.train.dropout import Dropout
from edgegrad.train.layers import glorot
from edgegrad.train.loss import cross_entropy
from edgegrad.train.scalable_gcn_piece import Links, Piece

Arrays = dict[str, Any]
MODELS = ("gcn", "sage")
GRADIENTS = ("mailbox", "snapshot", "none")


@dataclass(frozen=True)
class Settings:
    """Those of Kipf and Welling's paper, and how batches are made."""

    model: str = "gcn"
    layers: int = 2
    hidden: int = 16
    neighbours: str = "fresh"
    gradients: str = "mailbox"
    dropout: float = 0.5
    l2: float = 5e-4
    half: bool = False  # stored rows in float16; gradients stay as wide as the parameters

    @property
    def title(self) -> str:
        """Name of the model."""
        return f"Scalable{self.model.upper()}"


class ScalableGCN:
    """The model, its store, and one step of training."""

    def __init__(
        self,
        data: NodeGraph,
        settings: Settings,
        device: Device,
        parts: Any,
        folder: Path | None = None,  # where stores are kept in files, mapped into memory
    ) -> None:
        self.data, self.settings, self.device, self.folder = data, settings, device, folder
        # Batches are made once, so that all seeds have the same split.
        self.split = data.split(np.random.default_rng(0))
        links, train = Links.of(settings.model, data), self.split["train"]
        cut = batches(links.graph, parts, neighbours=settings.neighbours)
        self.pieces = [Piece(b, links, data, train, device) for b in cut]
        (everything,) = batches(links.graph, np.zeros(data.n_nodes, np.int64))
        self.whole = Piece(everything, links, data, train, device)
        self.stores: dict[str, HistoryStore] = {}
        self.clear()

    def clear(self) -> None:
        """Forget the rows of earlier steps."""
        s, dtype = self.settings, str(self.device.dtype)
        inner = s.layers - 1
        rows = "float16" if s.half else dtype
        self.store = self._fresh("rows", s.hidden, inner, rows, grad=s.gradients == "mailbox")
        self.snapshots: list[tuple[HistoryStore, int]] = []
        if s.gradients == "snapshot" and inner:
            hidden = self._fresh("grads", s.hidden, inner - 1, dtype)
            last = self._fresh("last_grads", self.data.n_classes, 1, dtype)
            self.snapshots = [(hidden, layer) for layer in range(inner - 1)] + [(last, 0)]

    def _fresh(
        self, name: str, dim: int, n_layers: int, dtype: str, grad: bool = False
    ) -> HistoryStore:
        path = None
        if self.folder:
            path = self.folder / name
            path.unlink(missing_ok=True)
        if name in self.stores:
            self.stores[name].close()
        self.stores[name] = HistoryStore(
            self.data.n_nodes, dim, n_layers, dtype, grad=grad, device=self.device.name, path=path
        )
        return self.stores[name]

    @property
    def store_bytes(self) -> int:
        """Bytes of rows and gradients of earlier steps."""
        return sum(store.nbytes for store in self.stores.values())

    def initialise(self, rng: np.random.Generator) -> Arrays:
        """Draw new parameters and return them by name; the optimiser changes them in place."""
        s = self.settings
        widths = [self.data.features.n_columns, *[s.hidden] * (s.layers - 1), self.data.n_classes]
        n_matrices = 2 if self.whole.own_apart else 1
        self.params = {
            f"weight{i}": self.device.array(
                glorot(rng, (fan_in, n_matrices * fan_out), fan_in, fan_out)
            )
            for i, (fan_in, fan_out) in enumerate(itertools.pairwise(widths))
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
            heard = piece.hear(store.pull(at, piece.neighbours))
            taken.append(heard @ self.params[f"weight{layer + 1}"][:, : store.dim].T)
        return taken

    def pull(self, piece: Piece) -> list[Any]:
        """Return the neighbours' rows of each inner layer."""
        shape = len(piece.neighbours), self.settings.hidden
        return [
            self.store.pull(layer, piece.neighbours, self.device.empty(*shape))
            for layer in range(self.settings.layers - 1)
        ]

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
