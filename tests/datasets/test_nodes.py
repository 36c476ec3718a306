from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edgegrad.datasets import DataError, Features, NodeGraph, load_nodes

SPARSE = {
    "x": None,
    "x_indptr": np.array([0, 2, 2, 3, 3], np.int32),
    "x_indices": np.array([2, 0, 1], np.int16),
    "x_data": np.array([3, 1, 4], np.uint8),
    "x_shape": np.array([4, 3]),
}


def write(folder: Path, **changes: Any) -> Path:
    """Write four nodes, three edges of which one is a loop, two classes; None leaves it out."""
    arrays = {
        "edge_index": np.array([[0, 1, 2], [1, 1, 0]], dtype=np.int32),
        "x": np.array([[1, 0, 3], [0, 0, 0], [0, 4, 0], [0, 0, 0]], dtype=np.float32),
        "y": np.array([1, 0, 1, -1], dtype=np.int8),
        "train_idx": np.array([0]),
        "val_idx": np.array([1]),
        "test_idx": np.array([2]),
        **changes,
    }
    np.savez(folder / "tiny.npz", **{k: v for k, v in arrays.items() if v is not None})
    return folder / "tiny.npz"


def dense(features: Features) -> list[list[float]]:
    x = np.zeros((len(features.offsets) - 1, features.n_columns))
    nodes = np.repeat(np.arange(len(x)), np.diff(features.offsets))
    x[nodes, features.columns] = features.values
    return x.tolist()


@pytest.mark.parametrize("sparse", [False, True])
def test_what_is_read(tmp_path: Path, sparse: bool) -> None:
    graph = load_nodes(write(tmp_path, **(SPARSE if sparse else {})))
    assert graph.counts() == {"nodes": 4, "edges": 2, "features": 3, "classes": 2}
    assert graph.edge_index.tolist() == [[0, 2], [1, 0]]
    assert dense(graph.features) == [[1, 0, 3], [0, 0, 0], [0, 4, 0], [0, 0, 0]]
    assert dense(graph.features.normalised()) == [[0.25, 0, 0.75], [0, 0, 0], [0, 1, 0], [0, 0, 0]]
    assert graph.class_names == ("0", "1")
    assert (graph.name, graph.row_name(2), graph.own_split) == ("tiny", "node 2", True)
    parts = graph.split(np.random.default_rng(0))
    assert {part: np.flatnonzero(rows).tolist() for part, rows in parts.items()} == {
        "train": [0],
        "validation": [1],
        "test": [2],
    }


def test_validation_may_be_left_out(tmp_path: Path) -> None:
    parts = load_nodes(write(tmp_path, val_idx=None)).split(np.random.default_rng(0))
    assert list(parts) == ["train", "test"]


def test_rows_are_taken_in_the_order_given(tmp_path: Path) -> None:
    features = load_nodes(write(tmp_path)).features
    assert dense(features.take(np.array([2, 1, 0, 0]))) == [
        [0, 4, 0],
        [0, 0, 0],
        [1, 0, 3],
        [1, 0, 3],
    ]


def test_classes_may_have_names(tmp_path: Path) -> None:
    graph = load_nodes(write(tmp_path, class_names=np.array(["no", "yes", "never seen"])))
    assert graph.class_names == ("no", "yes", "never seen")


def test_split_is_drawn_from_each_class_by_seed() -> None:
    labels = np.repeat([0, 1, -1], [100, 60, 7])
    graph = NodeGraph(
        "many", np.empty((2, 0), np.int32), Features.of(np.eye(167)), labels, ("a", "b")
    )
    first, again, other = (graph.split(np.random.default_rng(seed)) for seed in (0, 0, 1))
    sizes = {part: np.bincount(labels[rows]).tolist() for part, rows in first.items()}
    assert sizes == {"train": [20, 20], "validation": [30, 30], "test": [50, 10]}
    assert (sum(first.values()) == (labels >= 0)).all()
    assert all((first[part] == again[part]).all() for part in first)
    assert (first["train"] != other["train"]).any()


NO_PARTS = {"train_idx": None, "val_idx": None, "test_idx": None}
BAD = {
    "missing": ({"y": None}, "array `y` is missing, found edge_index, x, train_idx"),
    "no features": ({"x": None}, "array `x_indptr` is missing"),
    "one row": ({"edge_index": np.zeros((1, 3), np.int32)}, "shape (1, 3), expected (2, n_edges)"),
    "far end": ({"edge_index": np.full((2, 1), 4)}, "edge_index reach id 4, expected ids below 4"),
    "no nodes": ({"y": np.empty(0, int)}, "edge_index reach id 2, expected ids below 0"),
    "class": ({"y": np.array([1, 0, -2, 0])}, "`y` has 4 classes from -2 on"),
    "float classes": ({"y": np.zeros(4)}, "`y` has 1 dimensions of float64"),
    "names": ({"class_names": np.array(["one"])}, "classes reach id 1, expected ids below 1"),
    "rows": ({"x": np.ones((3, 2))}, "`x` has shape (3, 2) and dtype float64"),
    "text": ({"x": np.full((4, 1), "a")}, "expected (n_nodes=4, n_features) of real numbers"),
    "nan": ({"x": np.full((4, 1), np.nan)}, "the features have a NaN or an infinity"),
    "shape": ({**SPARSE, "x_shape": np.array([5, 3])}, "`x_shape` is [5, 3], expected [n_nodes=4"),
    "column": ({**SPARSE, "x_shape": np.array([4, 2])}, "x_indices reach id 2, expected ids below"),
    "values": ({**SPARSE, "x_data": np.ones(2)}, "`x_data` has shape (2,) and dtype float64"),
    "offsets": ({**SPARSE, "x_indptr": np.array([0, 2, 1, 3, 3])}, "`x_indptr` is not 5 rising"),
    "short": (
        {**SPARSE, "x_indptr": np.array([0, 2, 3])},
        "from 0 to 3, the length of `x_indices`",
    ),
    "half a split": ({"test_idx": None}, "array `test_idx` is missing"),
    "no class": ({"test_idx": np.array([3])}, "`test_idx` names a node whose class is -1"),
    "leak": ({"test_idx": np.array([0])}, "`test_idx` names a node that was named before"),
    "twice": ({"val_idx": np.array([1, 1])}, "`val_idx` names a node that was named before"),
    "nowhere": ({"val_idx": np.array([4])}, "val_idx reach id 4, expected ids below 4"),
    "nothing to test": ({"test_idx": np.empty(0, int)}, "no node for the part 'test'"),
    "too few to draw": (NO_PARTS, "no node for the part 'validation'"),
}


@pytest.mark.parametrize(("changes", "words"), BAD.values(), ids=BAD)
def test_bad_archive_is_told_in_one_line(
    tmp_path: Path, changes: dict[str, Any], words: str
) -> None:
    path = write(tmp_path, **changes)
    with pytest.raises(DataError) as caught:
        load_nodes(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert words in message
    assert "\n" not in message
