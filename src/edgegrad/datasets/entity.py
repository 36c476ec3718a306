"""Entity graphs: triples (subject, relation, object), and a class for some of the entities."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from edgegrad.datasets import archive
from edgegrad.datasets.archive import Archive, count, ids
from edgegrad.datasets.errors import DataError
from edgegrad.datasets.task import Parts

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
    item: str = "entity"  # what a labelled entity is called
    entity_names: tuple[str, ...] | None = None
    task: str = "entity classification"

    @property
    def n_triples(self) -> int:
        """Facts as they stand in the data, without inverses."""
        return len(self.edge_type)

    @property
    def n_classes(self) -> int:
        """Classes with a name, also where no entity has it."""
        return len(self.class_names)

    @property
    def own_split(self) -> bool:
        """Whether the data say what to learn from."""
        return self.train is not None

    def counts(self) -> dict[str, int]:
        """Sizes, in the data's own terms."""
        return {
            "entities": self.n_entities,
            "triples": self.n_triples,
            "relations": self.n_relations,
            "classes": self.n_classes,
        }

    def label_of(self, entity: int) -> str:
        """Give the name of an entity, or its number where the data set has no names."""
        return self.entity_names[entity] if self.entity_names else f"{self.item} {entity}"

    def row_name(self, row: int) -> str:
        """Give the name of a labelled entity."""
        return self.label_of(int(self.labelled[row]))

    def split(self, rng: np.random.Generator) -> Parts:
        """Choose the labelled entities to learn from; all others are there to test on."""
        train = self.train
        if train is None:
            train = np.zeros(len(self.labelled), dtype=bool)
            n_train = max(1, round(TRAIN_SHARE * len(train)))
            train[rng.permutation(len(train))[:n_train]] = True
        return {"train": train, "test": ~train}


def load(path: str | Path) -> EntityGraph:
    """Read an ``.npz`` archive of triples and labels.

    Needed arrays: `edge_index` (2, n_triples) with subjects in row 0 and objects in row 1,
    `edge_type` (n_triples,), and `train_idx, train_y, test_idx, test_y` with entities and their
    classes. `num_nodes`, `num_relations` and `class_names` are optional: without them the counts
    are taken from the largest ids. Neither inverse relations nor self loops belong in the file.
    """
    return archive.load(path, NEEDED, _entity_graph)


def _entity_graph(name: str, arrays: Archive) -> EntityGraph:
    edge_index = archive.edges(arrays, "n_triples")
    edge_type = ids(arrays, "edge_type")
    if len(edge_type) != edge_index.shape[1]:
        expected = edge_index.shape[1]
        raise DataError(f"`edge_type` has {len(edge_type)} entries, expected n_triples={expected}")
    idx = {part: ids(arrays, f"{part}_idx") for part in ("train", "test")}
    y = {part: ids(arrays, f"{part}_y") for part in ("train", "test")}
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
    return EntityGraph(
        name=name,
        n_entities=count(arrays, "num_nodes", edge_index=edge_index, labelled=labelled),
        n_relations=count(arrays, "num_relations", edge_type=edge_type),
        edge_index=edge_index.astype(np.int32),
        edge_type=edge_type.astype(np.int32),
        labelled=labelled.astype(np.int32),
        labels=labels,
        class_names=archive.class_names(arrays, labels),
        train=np.arange(len(labels)) < len(idx["train"]),
    )
