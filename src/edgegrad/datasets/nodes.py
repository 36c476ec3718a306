"""Graphs whose nodes have features and a class, in the layout of the Planetoid sets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgegrad.datasets import archive
from edgegrad.datasets.archive import Archive, below, ids
from edgegrad.datasets.errors import DataError
from edgegrad.datasets.task import Parts

NEEDED = ("edge_index", "y")
SPARSE = ("x_indptr", "x_indices", "x_data", "x_shape")
PARTS = {"train": "train_idx", "validation": "val_idx", "test": "test_idx"}
# Where a data set brings no split of its own: nodes of each class to learn from and to validate
# on, the rest being there to test on (Shchur et al. 2018, arXiv:1811.05868).
N_TRAIN, N_VALIDATION = 20, 30


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

    def take(self, rows: NDArray[np.int64]) -> Features:
        """Choose rows, in the order given; repeated ones are repeated."""
        starts = self.offsets[rows].astype(np.int64)
        lengths = self.offsets[rows + 1] - starts
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        at = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths)
        return Features(offsets.astype(np.int32), self.columns[at], self.values[at], self.n_columns)


@dataclass(frozen=True)
class NodeGraph:
    """A graph whose task is to tell the class of a node."""

    name: str
    edge_index: NDArray[np.int32]  # (2, n_edges): sources, then destinations; no self loops
    features: Features
    labels: NDArray[np.int64]  # (n_nodes,); -1: not known
    class_names: tuple[str, ...]
    parts: Parts | None = None  # None: drawn anew for every seed
    item: str = "node"
    task: str = "node classification"

    @property
    def n_nodes(self) -> int:
        """Nodes, with and without a known class."""
        return len(self.labels)

    @property
    def n_classes(self) -> int:
        """Classes with a name, also where no node has it."""
        return len(self.class_names)

    @property
    def own_split(self) -> bool:
        """Whether the data say what to learn from."""
        return self.parts is not None

    def counts(self) -> dict[str, int]:
        """Sizes; an edge that goes both ways counts twice."""
        return {
            "nodes": self.n_nodes,
            "edges": self.edge_index.shape[1],
            "features": self.features.n_columns,
            "classes": self.n_classes,
        }

    def row_name(self, row: int) -> str:
        """Give the number of a node, after what it is."""
        return f"{self.item} {row}"

    def split(self, rng: np.random.Generator) -> Parts:
        """Take the data's own parts, or draw from each class."""
        if self.parts is not None:
            return self.parts
        # 0: test, 1: train, 2: validation; -1: not known.
        use = np.where(self.labels < 0, -1, 0)
        for c in range(self.n_classes):
            members = rng.permutation(np.flatnonzero(self.labels == c))
            use[members[:N_TRAIN]] = 1
            use[members[N_TRAIN : N_TRAIN + N_VALIDATION]] = 2
        return {"train": use == 1, "validation": use == 2, "test": use == 0}


def load_nodes(path: str | Path) -> NodeGraph:
    """Read an ``.npz`` archive of edges, features and classes.

    Needed arrays: `edge_index` (2, n_edges), sources in row 0 and destinations in row 1, each edge
    in both directions if it has none; `y` (n_nodes,) classes, -1 where not known; the features as
    `x` (n_nodes, n_features), or without their zeros as `x_indptr`, `x_indices`, `x_data` and
    `x_shape`, in compressed rows. `train_idx` and `test_idx` (both or none) tell nodes to learn
    from and to test on, `val_idx` beside them those to stop by; `class_names` is optional.
    """
    return archive.load(path, NEEDED, _node_graph)


def _node_graph(name: str, arrays: Archive) -> NodeGraph:
    edge_index = archive.edges(arrays, "n_edges")
    labels = archive.whole(arrays, "y")
    n_nodes = len(labels)
    below("edge_index", edge_index, n_nodes)
    if not n_nodes or labels.min() < -1:
        has = f"{n_nodes} classes" + (f" from {labels.min()} on" if n_nodes else "")
        raise DataError(f"`y` has {has}, expected one of each node, at least -1")
    class_names = archive.class_names(arrays, labels)
    loops = edge_index[0] == edge_index[1]
    graph = NodeGraph(
        name=name,
        # A layer gives every node one loop of its own.
        edge_index=np.ascontiguousarray(edge_index[:, ~loops], dtype=np.int32),
        features=_features(arrays, n_nodes),
        labels=labels,
        class_names=class_names,
        parts=_parts(arrays, labels),
    )
    for part, rows in graph.split(np.random.default_rng(0)).items():
        if not rows.any():
            raise DataError(f"there is no node for the part {part!r}, expected at least 1")
    return graph


def _features(arrays: Archive, n_nodes: int) -> Features:
    if "x" in arrays:
        x = arrays["x"]
        if x.ndim != 2 or len(x) != n_nodes or x.dtype.kind not in "fiub":
            raise DataError(
                f"`x` has shape {x.shape} and dtype {x.dtype}, "
                f"expected (n_nodes={n_nodes}, n_features) of real numbers"
            )
        features = Features.of(x)
    else:
        features = _sparse_features(arrays, n_nodes)
    if not np.isfinite(features.values).all():
        raise DataError("the features have a NaN or an infinity, expected finite numbers")
    return features


def _sparse_features(arrays: Archive, n_nodes: int) -> Features:
    archive.need(arrays, SPARSE)
    shape = archive.whole(arrays, "x_shape").tolist()
    if len(shape) != 2 or shape[0] != n_nodes:
        raise DataError(f"`x_shape` is {shape}, expected [n_nodes={n_nodes}, n_features]")
    offsets, columns = ids(arrays, "x_indptr"), ids(arrays, "x_indices")
    values = arrays["x_data"]
    ends = (len(offsets), *offsets[:1], *offsets[-1:])
    if ends != (n_nodes + 1, 0, len(columns)) or (np.diff(offsets) < 0).any():
        raise DataError(
            f"`x_indptr` is not {n_nodes + 1} rising numbers from 0 to "
            f"{len(columns)}, the length of `x_indices`"
        )
    if values.shape != columns.shape or values.dtype.kind not in "fiub":
        raise DataError(
            f"`x_data` has shape {values.shape} and dtype {values.dtype}, "
            f"expected {len(columns)} real numbers"
        )
    below("x_indices", columns, shape[1])
    return Features(
        offsets.astype(np.int32), columns.astype(np.int32), values.astype(np.float64), shape[1]
    )


def _parts(arrays: Archive, labels: NDArray[np.int64]) -> Parts | None:
    if not any(name in arrays for name in PARTS.values()):
        return None
    archive.need(arrays, ("train_idx", "test_idx"))
    parts, taken = {}, np.zeros(len(labels), dtype=bool)
    for part, name in PARTS.items():
        if name not in arrays:
            continue
        nodes = below(name, ids(arrays, name), len(labels))
        if (labels[nodes] < 0).any():
            raise DataError(f"`{name}` names a node whose class is -1, expected known classes")
        if taken[nodes].any() or len(np.unique(nodes)) != len(nodes):
            raise DataError(f"`{name}` names a node that was named before, expected distinct ones")
        parts[part] = np.zeros(len(labels), dtype=bool)
        parts[part][nodes] = taken[nodes] = True
    return parts
