"""Node graphs: edges without a type, features, and a class for the nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from edgegrad.datasets.countries import countries
from edgegrad.datasets.entity import _below, _ids, _read
from edgegrad.datasets.errors import DataError

NEEDED = ("edge_index", "y", "train_idx", "test_idx")


@dataclass(frozen=True)
class NodeGraph:
    """An undirected graph whose task is to tell the class of a node."""

    name: str
    edge_index: NDArray[np.int32]  # (2, n_edges), both directions, no self loops
    features: NDArray[np.float32]  # (n_nodes, n_features)
    labels: NDArray[np.int64]  # (n_nodes,); -1: none
    train: NDArray[np.int64]
    test: NDArray[np.int64]
    n_classes: int

    @property
    def n_nodes(self) -> int:
        """Nodes, with and without a label."""
        return len(self.labels)


def load_nodes(path: str | Path) -> NodeGraph:
    """Read an ``.npz`` archive of a graph with features and labels.

    Needed arrays: `edge_index` (2, n_edges) with each edge in both directions, `y` (n_nodes,),
    `train_idx`, `test_idx`, and the features, as `x` (n_nodes, n_features) or in compressed rows:
    `x_indptr`, `x_indices`, `x_data`, `x_shape`. Each row of features is divided by its sum.
    """
    path = Path(path)
    archive = _read(path)
    missing = [name for name in NEEDED if name not in archive]
    if "x" not in archive and "x_indptr" not in archive:
        missing.append("x")
    if missing:
        raise DataError(
            f"{path}: array `{missing[0]}` is missing, found {', '.join(archive) or 'nothing'}"
        )
    try:
        return _node_graph(path.stem, archive)
    except DataError as error:
        raise DataError(f"{path}: {error}") from None


def _node_graph(name: str, archive: Mapping[str, NDArray]) -> NodeGraph:
    labels = archive["y"].astype(np.int64)
    n = len(labels)
    edges = _below("edges", _ids(archive, "edge_index", 2), n)
    features = _features(archive)
    if features.shape[0] != n:
        raise DataError(f"features have {features.shape[0]} rows, `y` has {n} entries")
    parts = [_below(p, _ids(archive, p, 1), n) for p in ("train_idx", "test_idx")]
    for part, rows in zip(("train_idx", "test_idx"), parts, strict=True):
        if not len(rows) or (labels[rows] < 0).any():
            raise DataError(f"`{part}` is empty or names a node without a class")
    size = np.abs(features).sum(axis=1, keepdims=True)
    edges = edges[:, edges[0] != edges[1]]
    return NodeGraph(
        name=name,
        edge_index=edges.astype(np.int32),
        features=features / np.where(size, size, 1),
        labels=labels,
        train=parts[0],
        test=parts[1],
        n_classes=int(labels.max()) + 1,
    )


def _features(archive: Mapping[str, NDArray]) -> NDArray[np.float32]:
    if "x" in archive:
        if archive["x"].ndim != 2:
            raise DataError(f"`x` has shape {archive['x'].shape}, expected (n_nodes, n_features)")
        return archive["x"].astype(np.float32)
    missing = {"x_indices", "x_data", "x_shape"} - archive.keys()
    if missing:
        raise DataError(f"array `{min(missing)}` is missing beside `x_indptr`")
    dense = np.zeros(archive["x_shape"], np.float32)
    rows = np.repeat(np.arange(len(dense)), np.diff(archive["x_indptr"]))
    dense[rows, _below("x_indices", _ids(archive, "x_indices", 1), dense.shape[1])] = archive[
        "x_data"
    ]
    return dense


def country_graph(seed: int = 0) -> NodeGraph:
    """Make the embedded example: `countries` without the kinds of its relations.

    The features of a node are its own number; one labelled node in five is there to learn from.
    """
    data = countries()
    forth = data.edge_index[:, data.edge_index[0] != data.edge_index[1]]
    labels = np.full(data.n_entities, -1, np.int64)
    labels[data.labelled] = data.labels
    train = data.split(np.random.default_rng(seed))
    return NodeGraph(
        name=data.name,
        edge_index=np.concatenate([forth, forth[::-1]], axis=1),
        features=np.eye(data.n_entities, dtype=np.float32),
        labels=labels,
        train=data.labelled[train].astype(np.int64),
        test=data.labelled[~train].astype(np.int64),
        n_classes=data.n_classes,
    )
