"""Handwritten digits as a graph of neighbours, from the package scikit-learn."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from edgegrad.datasets.errors import MissingPackageError
from edgegrad.datasets.nodes import Features, NodeGraph

N_NEIGHBOURS = 10


def digits() -> NodeGraph:
    """Build the graph; the task is the digit that an image shows.

    Nodes are the 1,797 images of 8 by 8 pixels, edges lead from the ten nearest images to an image
    and back. A few images of each class are learnt from, drawn anew for every seed.
    """
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise MissingPackageError("scikit-learn", "the graph of digits") from None
    images, labels = load_digits(return_X_y=True)
    return NodeGraph(
        name="digits",
        edge_index=neighbours(images, N_NEIGHBOURS),
        features=Features.of(images),
        labels=labels.astype(np.int64),
        class_names=tuple("0123456789"),
        item="image",
    )


def neighbours(points: NDArray, k: int) -> NDArray[np.int32]:
    """Join each point with its k nearest, in both directions; equal distances go by number."""
    squares = (points**2).sum(axis=1)
    distances = squares[:, None] - 2 * points @ points.T + squares
    np.fill_diagonal(distances, np.inf)
    nearest = np.argsort(distances, axis=1, kind="stable")[:, :k]
    joined = np.zeros(distances.shape, dtype=bool)
    joined[np.arange(len(points))[:, None], nearest] = True
    return np.stack(np.nonzero(joined | joined.T)).astype(np.int32)
