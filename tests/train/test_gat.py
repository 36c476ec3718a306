from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from edgegrad.datasets import Features, NodeGraph
from edgegrad.train.device import Device
from edgegrad.train.dropout import Dropout
from edgegrad.train.fit import Run, fit
from edgegrad.train.gat import GAT, Settings
from edgegrad.train.loss import cross_entropy

MODELS = ["gat", "gatv2"]


def rows(*numbers: int) -> np.ndarray:
    return np.isin(np.arange(7), numbers)


def tiny() -> NodeGraph:
    """Seven nodes: one way and both ways, a double edge, a node alone, one without features."""
    rng = np.random.default_rng(1)
    x = rng.uniform(0.5, 1.5, (7, 5)) * (rng.random((7, 5)) < 0.6)
    x[3] = 0
    return NodeGraph(
        name="tiny",
        edge_index=np.array([[0, 1, 1, 2, 3, 3, 4, 5], [1, 0, 2, 1, 4, 4, 0, 2]], np.int32),
        features=Features.of(x),
        labels=np.array([0, 2, 1, -1, 1, 0, 2]),
        class_names=("a", "b", "c"),
        parts={"train": rows(0, 1, 2), "validation": rows(4), "test": rows(5, 6)},
    )


def settings_of(model: str, **changes: Any) -> Settings:
    return Settings(**{"model": model, "heads": 3, "hidden": 2, "out_heads": 2, **changes})


def model_of(settings: Settings) -> GAT:
    model = GAT(tiny(), settings, Device("cpu", "float64"))
    rng = np.random.default_rng(3)
    for param in model.initialise(rng).values():
        param[...] = rng.normal(size=param.shape)  # biases too are to matter
    return model


def dense_features(data: NodeGraph) -> np.ndarray:
    features = data.features
    x = np.zeros((data.n_nodes, features.n_columns))
    nodes = np.repeat(np.arange(data.n_nodes), np.diff(features.offsets))
    x[nodes, features.columns] = features.values
    return x


def leaky(z: np.ndarray) -> np.ndarray:
    return np.where(z > 0, z, 0.2 * z)


def dense_layer(model: str, x: np.ndarray, heads: int, p: dict[str, Any]) -> np.ndarray:
    """Evaluate the papers' formulas with all pairs of nodes: (receiver, head, channel)."""
    edges, n = tiny().edge_index, len(x)
    counts = np.eye(n)
    np.add.at(counts, (edges[1], edges[0]), 1)
    ends = (x @ p["weight"]).reshape(n, 1 if model == "gat" else 2, heads, -1)
    senders, receivers = ends[:, 0], ends[:, -1]
    if model == "gat":
        of_sender, of_receiver = p["attention"].reshape(2, heads, -1)
        to, by = (receivers * of_receiver).sum(axis=2), (senders * of_sender).sum(axis=2)
        logits = leaky(to[:, None] + by[None])
    else:
        pairs = leaky(receivers[:, None] + senders[None])
        logits = (pairs * p["attention"].reshape(heads, -1)).sum(axis=3)
    shares = counts[:, :, None] * np.exp(logits)
    shares /= shares.sum(axis=1, keepdims=True)
    return np.einsum("ijh,jhc->ihc", shares, senders)


def dense_logits(settings: Settings, params: dict[str, np.ndarray]) -> np.ndarray:
    """Evaluate both layers."""
    first, second = (
        {name.partition(".")[2]: p for name, p in params.items() if name.startswith(layer)}
        for layer in ("first", "second")
    )
    x = dense_features(tiny())
    if not settings.raw:
        x = x / np.maximum(x.sum(axis=1, keepdims=True), 1e-300)
    sums = dense_layer(settings.model, x, settings.heads, first)
    sums = sums.reshape(len(x), -1) + first["bias"]
    hidden = np.where(sums > 0, sums, np.expm1(sums))
    return (
        dense_layer(settings.model, hidden, settings.out_heads, second).mean(axis=1)
        + second["bias"]
    )


@pytest.mark.parametrize("raw", [False, True])
@pytest.mark.parametrize("out_heads", [1, 2])
@pytest.mark.parametrize("model", MODELS)
def test_forward_is_the_papers_formula(model: str, out_heads: int, raw: bool) -> None:
    settings = settings_of(model, out_heads=out_heads, raw=raw)
    gat = model_of(settings)
    expected = dense_logits(settings, gat.params)
    np.testing.assert_allclose(gat.forward(), expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("p", [0.0, 0.4])
@pytest.mark.parametrize("model", MODELS)
def test_gradient_agrees_with_central_differences(model: str, p: float) -> None:
    gat, data = model_of(settings_of(model, l2=0.05, dropout=p)), tiny()
    weights = data.parts["train"][:, None] / 3

    def step_of() -> tuple[float, np.ndarray]:
        # A new Dropout of the same seed: every call drops the same.
        dropout = Dropout(p, np.random.default_rng(8), gat.device) if p else None
        return cross_entropy(gat.forward(dropout), gat.targets, weights)

    def objective() -> float:
        return step_of()[0] + 0.05 / 2 * sum(float((q**2).sum()) for q in gat.params.values())

    _, grad_logits = step_of()
    grads = {name: grad.copy() for name, grad in gat.backward(grad_logits).items()}
    assert grads.keys() == gat.params.keys()
    for name, param in gat.params.items():
        assert grads[name].shape == param.shape
        for at in np.ndindex(param.shape):
            kept = param[at]
            values = []
            for step in (1e-5, -1e-5):
                param[at] = kept + step
                values.append(objective())
            param[at] = kept
            slope = (values[0] - values[1]) / 2e-5
            np.testing.assert_allclose(grads[name][at], slope, atol=1e-8, err_msg=f"{name}{at}")


@pytest.mark.parametrize("model", MODELS)
def test_dropout_changes_features_and_attention(model: str) -> None:
    gat = model_of(settings_of(model))
    calm = gat.forward()
    gat.forward(Dropout(0.5, np.random.default_rng(0), gat.device))
    for layer in (gat.first, gat.second):
        assert 0 < (layer.projection.kept == 0).sum() < layer.projection.kept.size
        assert layer.options["dropout_p"] == 0.5
    assert gat.first.options["dropout_seed"] != gat.second.options["dropout_seed"]
    np.testing.assert_array_equal(gat.forward(), calm)


@pytest.mark.parametrize("model", MODELS)
def test_training_is_deterministic_by_seed(model: str) -> None:
    data, settings = tiny(), settings_of(model, epochs=5)
    gat = GAT(data, settings, Device("cpu"))
    first, other, again = (fit(gat, data, settings, seed) for seed in (0, 1, 0))
    assert first.loss == again.loss
    assert first.loss != other.loss
    assert len(first.loss["validation"]) == len(first.accuracy["test"]) == 6


def test_training_learns_and_stops_early() -> None:
    calm = {"heads": 8, "hidden": 8, "dropout": 0.0, "l2": 0.0, "lr": 0.05}

    def train(data: NodeGraph, **changes: int) -> tuple[Run, np.ndarray]:
        settings = settings_of("gat", **calm, **changes)
        gat = GAT(data, settings, Device("cpu"))
        return fit(gat, data, settings, seed=1), gat.forward().argmax(axis=1)

    data = tiny()
    (_, before), (run, after) = train(data, epochs=0), train(data, epochs=60)
    assert run.accuracy["train"][-1] == 1
    # A validation node that is told right before the training alone: the training makes it worse.
    node = next(n for n in (4, 5, 6) if before[n] != after[n])
    labels = np.where(rows(node), before, data.labels)
    parts = {**data.parts, "validation": rows(node), "test": rows(5, 6) & ~rows(node)}
    run, _ = train(replace(data, labels=labels, parts=parts), epochs=60, patience=4)
    assert run.epochs == len(run.loss["validation"]) - 1 < 60
    assert run.best < run.epochs
    assert run.predicted[node] == before[node]


def test_training_that_diverges_is_told() -> None:
    data, settings = tiny(), settings_of("gat", lr=1e30)
    with pytest.raises(FloatingPointError, match="seed 4: the loss is nan after"):
        fit(GAT(data, settings, Device("cpu")), data, settings, seed=4)
