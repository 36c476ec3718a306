"""Adam (Kingma and Ba 2015, arXiv:1412.6980, algorithm 1)."""

from __future__ import annotations

from typing import Any

Arrays = dict[str, Any]


def named(**layers: Arrays) -> Arrays:
    """Put the arrays of layers into one dictionary, as ``layer.array``."""
    return {f"{layer}.{name}": a for layer, arrays in layers.items() for name, a in arrays.items()}


class Adam:
    """Change parameters in place by their gradients; works on NumPy and CuPy arrays alike."""

    def __init__(
        self, params: Arrays, lr: float, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-8
    ) -> None:
        self.params, self.lr, self.beta1, self.beta2, self.eps = params, lr, beta1, beta2, eps
        self.mean = {name: 0 * p for name, p in params.items()}
        self.square = {name: 0 * p for name, p in params.items()}
        self.n_steps = 0

    def step(self, grads: Arrays) -> None:
        """Take one step; every parameter needs its gradient, under its name."""
        self.n_steps += 1
        # Both bias corrections and the learning rate are scalars: one factor for the whole array.
        root = (1 - self.beta2**self.n_steps) ** 0.5
        rate = self.lr * root / (1 - self.beta1**self.n_steps)
        for name, param in self.params.items():
            grad, mean, square = grads[name], self.mean[name], self.square[name]
            mean += (1 - self.beta1) * (grad - mean)
            square += (1 - self.beta2) * (grad * grad - square)
            param -= rate * mean / (square**0.5 + self.eps * root)
