from __future__ import annotations

import numpy as np

from edgegrad.train.loss import cross_entropy


def case() -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(0)
    logits, labels = rng.normal(size=(5, 3)), rng.integers(3, size=5)
    weights = np.array([0.5, 0, 0.25, 0, 0.25])[:, None]
    return logits, labels, np.eye(3)[labels], weights


def test_value_is_the_mean_over_the_rows_that_count() -> None:
    logits, labels, targets, weights = case()
    share = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    expected = -sum(weights[row, 0] * np.log(share[row, labels[row]]) for row in range(5))
    loss, _ = cross_entropy(logits, targets, weights)
    np.testing.assert_allclose(loss, expected, rtol=1e-14)


def test_gradient_agrees_with_central_differences() -> None:
    logits, _, targets, weights = case()
    _, grad = cross_entropy(logits, targets, weights)
    for at in np.ndindex(logits.shape):
        step = np.zeros_like(logits)
        step[at] = 1e-5
        up, _ = cross_entropy(logits + step, targets, weights)
        down, _ = cross_entropy(logits - step, targets, weights)
        np.testing.assert_allclose(grad[at], (up - down) / 2e-5, atol=1e-10)
    assert (grad[[1, 3]] == 0).all()


def test_huge_logits_do_not_overflow() -> None:
    logits = np.array([[1e4, 0.0], [0.0, 1e4]])
    loss, grad = cross_entropy(logits, np.eye(2)[[0, 0]], np.full((2, 1), 0.5))
    assert loss == 5e3
    np.testing.assert_array_equal(grad, [[0, 0], [-0.5, 0.5]])
