"""Products of features with a matrix that is learnt, for sparse and for dense features."""

from __future__ import annotations

from typing import Any

from edgegrad.datasets import Features
from edgegrad.train.device import Device
from edgegrad.train.dropout import Dropout
from edgegrad.train.sums import feature_sum


class SparseProjection:
    """X W for given features X that are mostly 0, and need no gradient."""

    def __init__(self, features: Features, device: Device) -> None:
        self.sum, self.values = feature_sum(features, device)

    def forward(self, _: None, weight: Any, dropout: Dropout | None) -> Any:
        """Return a row for each node."""
        factors = dropout.factors(*self.values.shape) if dropout else 1
        self.kept = self.values * factors
        return self.sum.forward(weight, self.kept)

    def backward(self, grad_output: Any) -> tuple[None, Any]:
        """Return no gradient for the features, and that for the matrix."""
        return None, self.sum.backward(grad_output, self.kept)


class DenseProjection:
    """X W for features X from the layer before."""

    def forward(self, input: Any, weight: Any, dropout: Dropout | None) -> Any:
        """Return a row for each row of the input."""
        self.factors = dropout.factors(*input.shape) if dropout else 1
        self.weight, self.kept = weight, input * self.factors
        return self.kept @ weight

    def backward(self, grad_output: Any) -> tuple[Any, Any]:
        """Return the gradients for the features and for the matrix."""
        return grad_output @ self.weight.T * self.factors, self.kept.T @ grad_output
