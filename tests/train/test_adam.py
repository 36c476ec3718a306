from __future__ import annotations

import numpy as np

from edgegrad.train.adam import Adam


def test_steps_follow_the_published_algorithm() -> None:
    rng = np.random.default_rng(0)
    params = {"weight": rng.normal(size=(3, 2)), "shares": rng.normal(size=4)}
    expected = {name: p.copy() for name, p in params.items()}
    mean = {name: np.zeros_like(p) for name, p in params.items()}
    square = {name: np.zeros_like(p) for name, p in params.items()}
    adam = Adam(params, lr=0.1, beta1=0.8, beta2=0.95, eps=1e-3)
    for t in range(1, 6):
        grads = {name: rng.normal(size=p.shape) for name, p in params.items()}
        adam.step(grads)
        for name, g in grads.items():
            mean[name] = 0.8 * mean[name] + 0.2 * g
            square[name] = 0.95 * square[name] + 0.05 * g**2
            unbiased = mean[name] / (1 - 0.8**t), square[name] / (1 - 0.95**t)
            expected[name] -= 0.1 * unbiased[0] / (np.sqrt(unbiased[1]) + 1e-3)
    for name, p in params.items():
        np.testing.assert_allclose(p, expected[name], rtol=1e-12)


def test_no_gradient_no_change() -> None:
    params = {"weight": np.ones(3, dtype=np.float32)}
    Adam(params, lr=0.1).step({"weight": np.zeros(3, dtype=np.float32)})
    assert (params["weight"] == 1).all()
    assert params["weight"].dtype == np.float32
