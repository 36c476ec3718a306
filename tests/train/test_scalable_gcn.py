"""The theorem of stores: with frozen parameters an epoch has the gradient of the whole graph."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edgegrad.datasets import Features, NodeGraph
from edgegrad.train.device import Device
from edgegrad.train.scalable_gcn import ScalableGCN, Settings
from edgegrad.train.scalable_gcn_piece import Piece

N, CLASSES = 30, 3
NEIGHBOURS = pytest.mark.parametrize("neighbours", ["fresh", "store"])
MODELS = pytest.mark.parametrize("model", ["gcn", "sage"])


def data() -> NodeGraph:
    rng = np.random.default_rng(5)
    pairs = {(min(p), max(p)) for p in rng.integers(0, N, (90, 2)).tolist() if p[0] != p[1]}
    one_way = np.array(sorted(pairs), np.int32).T
    return NodeGraph(
        name="random",
        edge_index=np.concatenate([one_way, one_way[::-1]], axis=1),
        features=Features.of(rng.normal(size=(N, 4)) * (rng.random((N, 4)) < 0.7)),
        labels=rng.integers(0, CLASSES, N),
        class_names=tuple("abc"),
        parts={"train": np.arange(N) % 2 == 0, "test": np.arange(N) % 2 == 1},
    )


def parts() -> list[np.ndarray]:
    """Each node in one batch; some twice in theirs."""
    cut = np.split(np.random.default_rng(6).permutation(N), [7, 16, 22])
    return [np.concatenate([own, own[[2, 0, 2]]]) for own in cut]


def model_of(layers: int, cls: Any = ScalableGCN, folder: Any = None, **settings: Any) -> Any:
    chosen = Settings(layers=layers, hidden=5, l2=0.0, **settings)
    model = cls(data(), chosen, Device("cpu", "float64"), parts(), folder)
    model.initialise(np.random.default_rng(7))
    return model


def dense(features: Features) -> np.ndarray:
    x = np.zeros((N, features.n_columns))
    x[np.repeat(np.arange(N), np.diff(features.offsets)), features.columns] = features.values
    return x


def full_batch(model: Any) -> dict[str, np.ndarray]:
    """The gradient of the whole graph, by dense matrices."""
    d, weights = model.data, list(model.params.values())
    a = np.zeros((N, N))
    a[d.edge_index[1], d.edge_index[0]] = 1
    if model.settings.model == "gcn":
        a += np.eye(N)
        mixes = [a / np.sqrt(np.outer(a.sum(axis=1), a.sum(axis=0)))]
    else:
        mixes = [a / a.sum(axis=1, keepdims=True), np.eye(N)]
    inputs, products = [dense(d.features)], []
    for weight in weights:
        matrices = np.split(weight, len(mixes), axis=1)
        products.append(sum(a @ inputs[-1] @ w for a, w in zip(mixes, matrices, strict=True)))
        inputs.append(np.maximum(products[-1], 0))
    shares = np.exp(products[-1]) / np.exp(products[-1]).sum(axis=1, keepdims=True)
    grad = (shares - np.eye(CLASSES)[d.labels]) * d.parts["train"][:, None]
    grad /= d.parts["train"].sum()
    grads = {}
    for i in reversed(range(len(weights))):
        back = np.concatenate([a.T @ grad for a in mixes], axis=1)
        grads[f"weight{i}"] = inputs[i].T @ back
        grad = back @ weights[i].T * (products[i - 1] > 0) if i else None
    return grads


def epoch(model: Any) -> dict[str, np.ndarray]:
    sums = {name: 0 * p for name, p in model.params.items()}
    for piece in model.pieces:
        for name, grad in model.step(piece)[1].items():
            sums[name] += grad
    model.store.step()
    return sums


def error_after(model: Any, epochs: int) -> float:
    """How far the gradient of the epoch after that many is from the whole graph's."""
    for _ in range(epochs):
        epoch(model)
    got, expected = epoch(model), full_batch(model)
    return max(np.abs(got[n] - expected[n]).max() / np.abs(expected[n]).max() for n in expected)


@NEIGHBOURS
@MODELS
@pytest.mark.parametrize("gradients", ["mailbox", "snapshot"])
@pytest.mark.parametrize("layers", [1, 2, 3, 4])
def test_after_2_l_minus_1_epochs_nothing_is_missing(
    layers: int, gradients: str, model: str, neighbours: str
) -> None:
    made = model_of(layers, model=model, gradients=gradients, neighbours=neighbours)
    assert error_after(made, 2 * (layers - 1)) < 1e-12


def test_stores_in_mapped_files_change_nothing(tmp_path: Path) -> None:
    for gradients in ("mailbox", "snapshot"):
        model = model_of(3, folder=tmp_path, gradients=gradients)
        for _ in range(2):
            assert error_after(model, 4) < 1e-12
            model.clear()
        for store in model.stores.values():
            store.close()
    assert {p.name for p in tmp_path.iterdir()} == {"rows", "grads", "last_grads"}


def test_half_stores_round_rows_alone() -> None:
    half, whole = (Device("cpu", "float32"), Device("cpu", "float64"))
    found = []
    for device, rounded in ((half, True), (whole, False)):
        settings = Settings(layers=3, hidden=5, l2=0.0, half=rounded)
        model = ScalableGCN(data(), settings, device, parts())
        model.initialise(np.random.default_rng(7))
        assert model.store.grad_tables.dtype == device.dtype
        for _ in range(5):
            grads = epoch(model)
        found.append(grads)
    for name, grad in found[1].items():
        assert 1e-6 < np.abs(found[0][name] - grad).max() / np.abs(grad).max() < 1e-2


@NEIGHBOURS
def test_fewer_epochs_are_not_enough(neighbours: str) -> None:
    assert error_after(model_of(3, neighbours=neighbours), 2) > 1e-5


@NEIGHBOURS
@pytest.mark.parametrize("layers", [2, 3, 4])
def test_without_gradients_much_is_missing(layers: int, neighbours: str) -> None:
    assert error_after(model_of(layers, gradients="none", neighbours=neighbours), 8) > 0.1


class ClearsLate(ScalableGCN):
    """Takes first, but clears only when the gradients of the step have been added."""

    def take(self, piece: Piece) -> Any:
        every = range(self.settings.layers - 1)
        return [self.store.take_grad(i, piece.own, clear=False) for i in every]

    def send(self, piece: Piece, sent: Any) -> None:
        super().send(piece, sent)
        super().take(piece)


class ReadsRepeatedIdsTwice(ScalableGCN):
    """Hands a row out at every position of its id."""

    def take(self, piece: Piece) -> Any:
        every = range(self.settings.layers - 1)
        taken = [self.store.pull_grad(i, piece.own) for i in every]
        super().take(piece)
        return taken


@pytest.mark.parametrize("layers", [2, 3, 4])
def test_the_wrong_order_fails(layers: int) -> None:
    """Only where a batch sends to itself: there the two orders differ."""
    model = model_of(layers, ClearsLate, neighbours="store")
    assert error_after(model, 2 * (layers - 1)) > 0.05


@NEIGHBOURS
@pytest.mark.parametrize("layers", [2, 3, 4])
def test_reading_repeated_ids_twice_fails(layers: int, neighbours: str) -> None:
    model = model_of(layers, ReadsRepeatedIdsTwice, neighbours=neighbours)
    assert error_after(model, 2 * (layers - 1)) > 0.05


class Counts(ScalableGCN):
    """Adds up what was sent and what was taken."""

    sent: Any = 0
    taken: Any = 0

    def take(self, piece: Piece) -> Any:
        taken = super().take(piece)
        self.taken = self.taken + np.array([t.sum(axis=0) for t in taken])
        return taken

    def send(self, piece: Piece, sent: Any) -> None:
        super().send(piece, sent)
        self.sent = self.sent + np.array([pulled.sum(axis=0) for _, pulled, _ in sent])[::-1]


@NEIGHBOURS
def test_conservation_at_every_step(neighbours: str) -> None:
    model = model_of(4, Counts, neighbours=neighbours)
    for piece in model.pieces * 3:
        model.step(piece)
        held = model.store.grad_tables.sum(axis=1)
        np.testing.assert_allclose(held + model.taken, model.sent, atol=1e-14)


def traced_peak_of_a_step(n: int, layers: int) -> int:
    """Bytes of arrays that a step on 250 nodes of a ring of n needs."""
    node = np.arange(n, dtype=np.int32)
    ring = np.roll(node, 1)
    graph = NodeGraph(
        name="ring",
        edge_index=np.array([[*node, *ring], [*ring, *node]], np.int32),
        features=Features.of(np.ones((n, 2))),
        labels=node % CLASSES,
        class_names=("a", "b", "c"),
        parts={"train": node >= 0, "test": node >= 0},
    )
    settings = Settings(layers=layers, hidden=16)
    model = ScalableGCN(graph, settings, Device("cpu", "float32"), node // 250)
    model.initialise(np.random.default_rng(0))
    model.step(model.pieces[0])  # the graph keeps what its backward needs
    tracemalloc.start()
    model.step(model.pieces[0])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


def test_memory_of_a_step_grows_with_the_batch_alone() -> None:
    small, large = (traced_peak_of_a_step(n, layers=4) for n in (500, 5000))
    assert small > 250 * 16 * 4  # arrays are counted
    assert large < small * 1.02


def test_evaluation_ignores_the_store() -> None:
    model = model_of(3)
    before = model.evaluate()
    epoch(model)
    assert (model.evaluate() == before).all()
