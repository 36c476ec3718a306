"""What a training needs of any data set."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

# Rows by what they are for: "train" to learn from, "test", and perhaps "validation".
Parts = dict[str, NDArray[np.bool_]]


class Task(Protocol):
    """Rows that have a class, some of them to learn from and some to test on."""

    @property
    def name(self) -> str:
        """What the data set is called."""
        ...

    @property
    def task(self) -> str:
        """What is to be done, e.g. "node classification"."""
        ...

    @property
    def item(self) -> str:
        """What a row is, e.g. "node"."""
        ...

    @property
    def labels(self) -> NDArray[np.int64]:
        """Class of each row; -1 where it is not known, which is in no part."""
        ...

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the classes, in the order of their numbers."""
        ...

    @property
    def own_split(self) -> bool:
        """Whether the parts come with the data, rather than from a seed."""
        ...

    def counts(self) -> dict[str, int]:
        """Sizes of the data by what they count."""
        ...

    def row_name(self, row: int) -> str:
        """Give the name of a row."""
        ...

    def split(self, rng: np.random.Generator) -> Parts:
        """Say which rows are for what; no row is in two parts."""
        ...
