from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from edgegrad.datasets import EntityGraph
from edgegrad.train.device import Device
from edgegrad.train.fit import fit
from edgegrad.train.loss import cross_entropy
from edgegrad.train.rgcn import RGCN, Settings


def tiny() -> EntityGraph:
    """Seven entities, three relations, one without triples; a loop, a double edge, a lone node."""
    triples = np.array(
        [(0, 0, 1), (0, 2, 1), (1, 0, 2), (2, 2, 0), (3, 2, 3), (3, 0, 1), (3, 0, 1), (4, 2, 5)],
        dtype=np.int32,
    )
    return EntityGraph(
        name="tiny",
        n_entities=7,
        n_relations=3,
        edge_index=np.ascontiguousarray(triples[:, [0, 2]].T),
        edge_type=np.ascontiguousarray(triples[:, 1]),
        labelled=np.array([5, 0, 6, 3, 1], dtype=np.int32),
        labels=np.array([0, 2, 1, 1, 0]),
        class_names=("a", "b", "c"),
        train=np.array([True, True, True, True, False]),
    )


def model_of(n_bases: int, l2: float = 0.0) -> RGCN:
    model = RGCN(tiny(), Settings(hidden=4, n_bases=n_bases, l2=l2), Device("cpu", dtype="float64"))
    model.initialise(np.random.default_rng(3))
    return model


def adjacency(data: EntityGraph) -> np.ndarray:
    """Give the normalised matrices (relation, receiver, sender), inverses and self included."""
    n, r = data.n_entities, data.n_relations
    counts = np.zeros((2 * r + 1, n, n))
    for (subject, object_), kind in zip(data.edge_index.T, data.edge_type, strict=True):
        counts[kind, object_, subject] += 1
        counts[r + kind, subject, object_] += 1
    counts[2 * r] = np.eye(n)
    return counts / np.maximum(1, counts.sum(axis=2, keepdims=True))


def dense_logits(model: RGCN, data: EntityGraph) -> np.ndarray:
    """Evaluate equations 2 and 3 of the paper with one matrix per relation."""
    a, p = adjacency(data), model.params
    n_relations, n = a.shape[:2]
    if "first.shares" in p:
        first = np.einsum("br,bnh->rnh", p["first.shares"][:, :, 0], p["first.tables"])
        blocks = p["second.weight"].reshape(-1, 4, data.n_classes)
        second = np.einsum("rb,bhc->rhc", p["second.shares"], blocks)
    else:
        # One row for each pair (relation, sender) that occurs, in this order.
        first = np.zeros((n_relations, n, 4))
        first[a.any(axis=1)] = p["first.tables"][0]
        second = p["second.weight"].reshape(n_relations, 4, data.n_classes)
    hidden = np.maximum(0, np.einsum("rij,rjh->ih", a, first))
    return np.einsum("rij,jh,rhc->ic", a, hidden, second)[data.labelled]


@pytest.mark.parametrize("n_bases", [0, 1, 3])
def test_forward_is_the_papers_formula(n_bases: int) -> None:
    model = model_of(n_bases)
    np.testing.assert_allclose(model.forward(), dense_logits(model, tiny()), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("l2", [0.0, 0.05])
@pytest.mark.parametrize("n_bases", [0, 1, 3])
def test_gradient_agrees_with_central_differences(n_bases: int, l2: float) -> None:
    model, data = model_of(n_bases, l2), tiny()
    weights = data.train[:, None] / data.train.sum()

    def objective() -> float:
        loss, _ = cross_entropy(dense_logits(model, data), model.targets, weights)
        first = (p for name, p in model.params.items() if name.startswith("first."))
        return loss + l2 * sum(float((p**2).sum()) for p in first)

    _, grad_logits = cross_entropy(model.forward(), model.targets, weights)
    grads = model.backward(grad_logits)
    assert grads.keys() == model.params.keys()
    for name, param in model.params.items():
        assert np.abs(grads[name]).max() > 1e-3
        for at in np.ndindex(param.shape):
            kept = param[at]
            values = []
            for step in (1e-5, -1e-5):
                param[at] = kept + step
                values.append(objective())
            param[at] = kept
            slope = (values[0] - values[1]) / 2e-5
            np.testing.assert_allclose(grads[name][at], slope, atol=1e-8, err_msg=f"{name}{at}")


def test_training_is_deterministic_by_seed() -> None:
    data, settings = tiny(), Settings(hidden=4, n_bases=2, epochs=5)
    model = RGCN(data, settings, Device("cpu"))
    first, other, again = (fit(model, data, settings, seed) for seed in (0, 1, 0))
    assert first.loss == again.loss
    assert first.loss != other.loss
    assert len(first.loss["train"]) == len(first.accuracy["test"]) == 6
    assert first.loss["train"][-1] < first.loss["train"][0]
    assert (first.epochs, first.best) == (5, 5)


def test_graph_without_triples_learns_from_the_self_relation() -> None:
    data = replace(tiny(), edge_index=np.empty((2, 0), np.int32), edge_type=np.empty(0, np.int32))
    settings = Settings(hidden=8, epochs=60, lr=0.1)
    run = fit(RGCN(data, settings, Device("cpu")), data, settings, seed=0)
    assert run.accuracy["train"][-1] == 1


def test_training_that_diverges_is_told() -> None:
    data, settings = tiny(), Settings(hidden=4, epochs=9, lr=1e30)
    with pytest.raises(FloatingPointError, match="seed 4: the loss is nan after"):
        fit(RGCN(data, settings, Device("cpu")), data, settings, seed=4)
