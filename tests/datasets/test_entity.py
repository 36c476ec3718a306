from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edgegrad.datasets import DataError, load


def archive(**changes: Any) -> dict[str, np.ndarray]:
    """Three entities, two relations, two labelled entities; None leaves an array out."""
    arrays = {
        "edge_index": np.array([[0, 1, 2], [1, 2, 0]], dtype=np.int32),
        "edge_type": np.array([0, 1, 0], dtype=np.int16),
        "train_idx": np.array([0], dtype=np.int32),
        "train_y": np.array([1], dtype=np.int8),
        "test_idx": np.array([2], dtype=np.int32),
        "test_y": np.array([0], dtype=np.int8),
        **changes,
    }
    return {name: array for name, array in arrays.items() if array is not None}


def write(folder: Path, **changes: Any) -> Path:
    np.savez(folder / "tiny.npz", **archive(**changes))
    return folder / "tiny.npz"


def test_counts_come_from_the_ids(tmp_path: Path) -> None:
    graph = load(write(tmp_path))
    assert (graph.name, graph.n_entities, graph.n_relations, graph.n_triples) == ("tiny", 3, 2, 3)
    assert graph.class_names == ("0", "1")
    assert graph.labelled.tolist() == [0, 2]
    assert graph.labels.tolist() == [1, 0]
    parts = graph.split(np.random.default_rng(0))
    assert {part: rows.tolist() for part, rows in parts.items()} == {
        "train": [True, False],
        "test": [False, True],
    }
    assert graph.label_of(2) == "entity 2"


def test_counts_and_names_may_be_given(tmp_path: Path) -> None:
    names = np.array(["no", "yes", "never seen"])
    graph = load(
        write(tmp_path, num_nodes=np.int64(9), num_relations=np.int64(4), class_names=names)
    )
    assert (graph.n_entities, graph.n_relations) == (9, 4)
    assert graph.class_names == ("no", "yes", "never seen")


def test_no_triples_are_fine(tmp_path: Path) -> None:
    graph = load(
        write(tmp_path, edge_index=np.empty((2, 0), np.int32), edge_type=np.empty(0, np.int32))
    )
    assert (graph.n_entities, graph.n_relations, graph.n_triples) == (3, 0, 0)


BAD = {
    "missing": ({"edge_type": None}, "array `edge_type` is missing, found edge_index, train_idx"),
    "one row": ({"edge_index": np.zeros((1, 3), np.int32)}, "shape (1, 3), expected (2, n_triples"),
    "flat": ({"edge_index": np.zeros(6, np.int32)}, "`edge_index` has 1 dimensions of int32"),
    "float ids": ({"edge_type": np.zeros(3)}, "`edge_type` has 1 dimensions of float64"),
    "length": ({"edge_type": np.zeros(2, np.int32)}, "has 2 entries, expected n_triples=3"),
    "negative": ({"train_idx": np.array([-1])}, "`train_idx` has ids from -1 to -1"),
    "huge": ({"train_idx": np.array([2**40])}, "expected int32 ids"),
    "labels": ({"test_y": np.zeros(2, np.int8)}, "`test_y` has 2 entries, `test_idx` has 1"),
    "nothing to test": (
        {"test_y": np.zeros(0, np.int8), "test_idx": np.zeros(0, np.int32)},
        "the same number, at least 1",
    ),
    "leak": ({"test_idx": np.array([0])}, "name an entity twice"),
    "entities": ({"num_nodes": np.int64(2)}, "edge_index reach id 2, expected ids below 2"),
    "relations": ({"num_relations": np.int64(1)}, "edge_type reach id 1, expected ids below 1"),
    "count": ({"num_nodes": np.array([3, 3])}, "`num_nodes` is not a single whole number"),
    "classes": ({"class_names": np.array(["one"])}, "classes reach id 1, expected ids below 1"),
    "pickle": ({"class_names": np.array([{}, {}])}, "is not an .npz archive of plain arrays"),
}


@pytest.mark.parametrize(("changes", "words"), BAD.values(), ids=BAD)
def test_bad_archive_is_told_in_one_line(
    tmp_path: Path, changes: dict[str, Any], words: str
) -> None:
    path = write(tmp_path, **changes)
    with pytest.raises(DataError) as caught:
        load(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert words in message
    assert "\n" not in message


def test_what_is_no_archive(tmp_path: Path) -> None:
    np.save(tmp_path / "bare.npy", np.zeros(3))
    (tmp_path / "text.npz").write_text("edge_index")
    (tmp_path / "empty.npz").touch()
    (tmp_path / "torn.npz").write_bytes(write(tmp_path).read_bytes()[:200])
    for name in ("bare.npy", "text.npz", "empty.npz", "torn.npz"):
        with pytest.raises(DataError, match=r"is not an \.npz archive of plain arrays"):
            load(tmp_path / name)
    with pytest.raises(DataError, match="no such file"):
        load(tmp_path / "nothing.npz")
    with pytest.raises(DataError, match="is a folder"):
        load(tmp_path)
