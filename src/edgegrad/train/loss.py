"""Cross-entropy and its gradient."""

from __future__ import annotations

from typing import Any

import numpy as np


def cross_entropy(logits: Any, targets: Any, weights: Any) -> tuple[float, Any]:
    """Return the weighted cross-entropy of all rows, and its gradient for the logits.

    Works on NumPy and CuPy arrays alike: NumPy's functions hand a CuPy array to CuPy.

    Parameters
    ----------
    logits : array (n_rows, n_classes), T
    targets : array (n_rows, n_classes), T
        1 for the right class of a row, 0 elsewhere.
    weights : array (n_rows, 1), T
        What a row counts: 1 / n_train for a row to learn from, 0 for any other.
    """
    # The largest logit is taken off first, so that no exponential can overflow.
    shifted = logits - logits.max(axis=1, keepdims=True)
    log_share = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    loss = -(weights * targets * log_share).sum()
    return float(loss), weights * (np.exp(log_share) - targets)
