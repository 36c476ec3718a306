"""Graphs in the layout of the Planetoid sets: edges, features, and a class for the nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgegrad.datasets.countries import countries
from edgegrad.datasets.entity import _below, _ids, _read
from edgegrad.datasets.errors import DataError

NEEDED = ("edge_index", "y", "train_idx", "test_idx")


class Features(NamedTuple):
    """A matrix (n_nodes, n_columns) of which the zeros are not kept, row by row."""

    offsets: NDArray[np.int32]  # (n_nodes + 1,)
    columns: NDArray[np.int32]
    values: NDArray[np.float64]
    n_columns: int

    @classmethod
    def of(cls, dense: NDArray) -> Features:
        """Leave the zeros out of a matrix."""
        rows, columns = np.nonzero(dense)
        offsets = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(dense)))])
        values = dense[rows, columns].astype(np.float64)
        return cls(offsets.astype(np.int32), columns.astype(np.int32), values, dense.shape[1])

    def normalised(self) -> Features:
        """Divide each row by its sum; a row whose sum is 0 stays as it is."""
        lengths = np.diff(self.offsets)
        rows = np.repeat(np.arange(len(lengths)), lengths)
        sums = np.bincount(rows, self.values, len(lengths))
        return self._replace(values=self.values / np.where(sums == 0, 1, sums)[rows])


@dataclass(frozen=True)
class Planetoid:
    """An undirected graph whose task is to tell the class of a node."""

    name: str
    edge_index: NDArray[np.int32]  # (2, n_edges), both directions, no self loops
    features: Features
    labels: NDArray[np.int64]  # (n_nodes,); -1: none
    train: NDArray[np.int64]
    test: NDArray[np.int64]
    n_classes: int

    @property
    def n_nodes(self) -> int:
        """Nodes, with and without a label."""
        return len(self.labels)


def load_planetoid(path: str | Path) -> Planetoid:
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
        return _planetoid(path.stem, archive)
    except DataError as error:
        raise DataError(f"{path}: {error}") from None


def _planetoid(name: str, archive: Mapping[str, NDArray]) -> Planetoid:
    labels = archive["y"].astype(np.int64)
    n = len(labels)
    edges = _below("edges", _ids(archive, "edge_index", 2), n)
    features = _features(archive)
    if len(features.offsets) != n + 1:
        raise DataError(f"features have {len(features.offsets) - 1} rows, `y` has {n} entries")
    parts = [_below(p, _ids(archive, p, 1), n) for p in ("train_idx", "test_idx")]
    for part, rows in zip(("train_idx", "test_idx"), parts, strict=True):
        if not len(rows) or (labels[rows] < 0).any():
            raise DataError(f"`{part}` is empty or names a node without a class")
    edges = edges[:, edges[0] != edges[1]]
    return Planetoid(
        name=name,
        edge_index=edges.astype(np.int32),
        features=features.normalised(),
        labels=labels,
        train=parts[0],
        test=parts[1],
        n_classes=int(labels.max()) + 1,
    )


def _features(archive: Mapping[str, NDArray]) -> Features:
    if "x" in archive:
        if archive["x"].ndim != 2:
            raise DataError(f"`x` has shape {archive['x'].shape}, expected (n_nodes, n_features)")
        return Features.of(archive["x"])
    missing = {"x_indices", "x_data", "x_shape"} - archive.keys()
    if missing:
        raise DataError(f"array `{min(missing)}` is missing beside `x_indptr`")
    n_columns = int(archive["x_shape"][1])
    columns = _below("x_indices", _ids(archive, "x_indices", 1), n_columns)
    offsets = _ids(archive, "x_indptr", 1)
    if offsets[:1] != 0 or offsets[-1:] != len(columns) or (np.diff(offsets) < 0).any():
        raise DataError(f"`x_indptr` does not rise from 0 to {len(columns)}")
    values = archive["x_data"].astype(np.float64)
    return Features(offsets.astype(np.int32), columns.astype(np.int32), values, n_columns)


def country_graph(seed: int = 0) -> Planetoid:
    """Make the embedded example: `countries` without the kinds of its relations.

    The features of a node are its own number; one labelled node in five is there to learn from.
    """
    data = countries()
    forth = data.edge_index[:, data.edge_index[0] != data.edge_index[1]]
    labels = np.full(data.n_entities, -1, np.int64)
    labels[data.labelled] = data.labels
    train = data.split(np.random.default_rng(seed))
    return Planetoid(
        name=data.name,
        edge_index=np.concatenate([forth, forth[::-1]], axis=1),
        features=Features.of(np.eye(data.n_entities)),
        labels=labels,
        train=data.labelled[train].astype(np.int64),
        test=data.labelled[~train].astype(np.int64),
        n_classes=data.n_classes,
    )
