"""Entity graphs: triples (subject, relation, object), and a class for some of the entities."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from edgegrad.datasets.errors import DataError

NEEDED = ("edge_index", "edge_type", "train_idx", "train_y", "test_idx", "test_y")
# The share of the labelled entities to learn from where a data set brings no split of its own.
TRAIN_SHARE = 0.2


@dataclass(frozen=True)
class EntityGraph:
    """A relational graph whose task is to tell the class of an entity."""

    name: str
    n_entities: int
    n_relations: int
    edge_index: NDArray[np.int32]  # (2, n_triples): subjects, then objects
    edge_type: NDArray[np.int32]  # (n_triples,)
    labelled: NDArray[np.int32]  # (n_labelled,) distinct entities
    labels: NDArray[np.int64]  # (n_labelled,) their classes
    class_names: tuple[str, ...]
    train: NDArray[np.bool_] | None = None  # (n_labelled,); None: drawn anew for every seed
    entity: str = "entity"  # what a labelled entity is called
    entity_names: tuple[str, ...] | None = None

    @property
    def n_triples(self) -> int:
        """Facts as they stand in the data, without inverses."""
        return len(self.edge_type)

    @property
    def n_classes(self) -> int:
        """Classes with a name, also where no entity has it."""
        return len(self.class_names)

    def label_of(self, entity: int) -> str:
        """Give the name of an entity, or its number where the data set has no names."""
        return self.entity_names[entity] if self.entity_names else f"{self.entity} {entity}"

    def split(self, rng: np.random.Generator) -> NDArray[np.bool_]:
        """Mark the labelled entities to learn from; all others are there to test on."""
        if self.train is not None:
            return self.train
        chosen = np.zeros(len(self.labelled), dtype=bool)
        n_train = max(1, round(TRAIN_SHARE * len(chosen)))
        chosen[rng.permutation(len(chosen))[:n_train]] = True
        return chosen


def load(path: str | Path) -> EntityGraph:
    """Read an ``.npz`` archive of triples and labels.

    Needed arrays: `edge_index` (2, n_triples) with subjects in row 0 and objects in row 1,
    `edge_type` (n_triples,), and `train_idx, train_y, test_idx, test_y` with entities and their
    classes. `num_nodes`, `num_relations` and `class_names` are optional: without them the counts
    are taken from the largest ids. Neither inverse relations nor self loops belong in the file.
    """
    path = Path(path)
    archive = _read(path)
    missing = [name for name in NEEDED if name not in archive]
    if missing:
        found = ", ".join(archive) or "nothing"
        raise DataError(f"{path}: array `{missing[0]}` is missing, found {found}")
    try:
        return _entity_graph(path.stem, archive)
    except DataError as error:
        raise DataError(f"{path}: {error}") from None


def _read(path: Path) -> dict[str, NDArray]:
    if not path.is_file():
        what = "is a folder, expected an .npz archive" if path.is_dir() else "no such file"
        raise DataError(f"{path}: {what}")
    try:
        with path.open("rb") as file:
            archive = np.load(file, allow_pickle=False)
            return {name: archive[name] for name in archive.files}
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error})") from None
    except (ValueError, EOFError, AttributeError, zipfile.BadZipFile):
        # AttributeError: NumPy gives an array, which has no `files`, for a bare .npy file.
        raise DataError(f"{path}: is not an .npz archive of plain arrays") from None


def _entity_graph(name: str, archive: Mapping[str, NDArray]) -> EntityGraph:
    edge_index = _ids(archive, "edge_index", 2)
    if edge_index.shape[0] != 2:
        raise DataError(f"`edge_index` has shape {edge_index.shape}, expected (2, n_triples)")
    edge_type = _ids(archive, "edge_type", 1)
    if len(edge_type) != edge_index.shape[1]:
        expected = edge_index.shape[1]
        raise DataError(f"`edge_type` has {len(edge_type)} entries, expected n_triples={expected}")
    idx = {part: _ids(archive, f"{part}_idx", 1) for part in ("train", "test")}
    y = {part: _ids(archive, f"{part}_y", 1) for part in ("train", "test")}
    for part in ("train", "test"):
        if len(idx[part]) != len(y[part]) or not len(idx[part]):
            raise DataError(
                f"`{part}_y` has {len(y[part])} entries, `{part}_idx` has {len(idx[part])}, "
                "expected the same number, at least 1"
            )
    labelled = np.concatenate([idx["train"], idx["test"]])
    labels = np.concatenate([y["train"], y["test"]])
    if len(np.unique(labelled)) != len(labelled):
        raise DataError("`train_idx` and `test_idx` name an entity twice, expected distinct ones")
    class_names = archive.get("class_names", np.arange(labels.max() + 1))
    return EntityGraph(
        name=name,
        n_entities=_count(archive, "num_nodes", edge_index=edge_index, labelled=labelled),
        n_relations=_count(archive, "num_relations", edge_type=edge_type),
        edge_index=edge_index.astype(np.int32),
        edge_type=edge_type.astype(np.int32),
        labelled=labelled.astype(np.int32),
        labels=_below("classes", labels, np.size(class_names)),
        class_names=tuple(str(c) for c in np.ravel(class_names)),
        train=np.arange(len(labels)) < len(idx["train"]),
    )


def _ids(archive: Mapping[str, NDArray], name: str, n_dim: int) -> NDArray[np.int64]:
    array = archive[name]
    if array.ndim != n_dim or array.dtype.kind not in "iu":
        raise DataError(
            f"`{name}` has {array.ndim} dimensions of {array.dtype}, "
            f"expected {n_dim} of an integer type"
        )
    if array.size and (array.min() < 0 or array.max() > np.iinfo(np.int32).max):
        raise DataError(f"`{name}` has ids from {array.min()} to {array.max()}, expected int32 ids")
    return array.astype(np.int64)


def _count(archive: Mapping[str, NDArray], name: str, **ids: NDArray[np.int64]) -> int:
    """Read a count, or take one more than the largest id; no id may reach the count."""
    if name not in archive:
        return max(int(a.max(initial=-1)) for a in ids.values()) + 1
    if archive[name].size != 1 or archive[name].dtype.kind not in "iu":
        raise DataError(f"`{name}` is not a single whole number")
    count = int(archive[name].item())
    for what, array in ids.items():
        _below(what, array, count)
    return count


def _below(what: str, ids: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    if ids.size and ids.max() >= count:
        raise DataError(f"{what} reach id {ids.max()}, expected ids below {count}")
    return ids
