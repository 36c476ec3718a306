from __future__ import annotations

import sys
from importlib.util import find_spec

import numpy as np
import pytest

from edgegrad.datasets import MissingPackageError, digits
from edgegrad.datasets.digits import neighbours


@pytest.mark.skipif(find_spec("sklearn") is None, reason="needs scikit-learn (extra `demo`)")
def test_graph_of_digits() -> None:
    graph = digits()
    assert (graph.n_nodes, graph.n_classes, graph.features.n_columns) == (1797, 10, 64)
    assert np.bincount(graph.labels).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    src, dst = graph.edge_index
    assert (src != dst).all()
    assert np.bincount(dst, minlength=1797).min() >= 10
    # The graph knows something: 19 of 20 edges join images of the same digit.
    assert (graph.labels[src] == graph.labels[dst]).mean() > 0.95
    assert graph.row_name(7) == "image 7"


def test_neighbours_are_the_nearest_in_both_directions() -> None:
    points = np.array([[0.0], [1.0], [3.0], [3.5], [9.0]])
    edges = {(int(src), int(dst)) for src, dst in neighbours(points, 1).T}
    nearest = {(0, 1), (1, 0), (2, 3), (3, 2), (4, 3)}
    assert edges == nearest | {(dst, src) for src, dst in nearest}


def test_equal_distances_go_by_number() -> None:
    square = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    edges = {(int(src), int(dst)) for src, dst in neighbours(square, 1).T}
    assert edges == {(0, 1), (1, 0), (2, 0), (0, 2), (3, 1), (1, 3)}


def test_missing_package_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(MissingPackageError, match=r'scikit-learn: pip install "edgegrad\[demo\]"$'):
        digits()
