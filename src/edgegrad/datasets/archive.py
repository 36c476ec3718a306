"""Reading `.npz` archives that somebody else has made; what does not fit is told in one line."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from edgegrad.datasets.errors import DataError

Archive = Mapping[str, NDArray]
Data = TypeVar("Data")


def load(path: str | Path, needed: Sequence[str], build: Callable[[str, Archive], Data]) -> Data:
    """Read all arrays and build a data set of the file's name from them."""
    path = Path(path)
    archive = _read(path)
    try:
        need(archive, needed)
        return build(path.stem, archive)
    except DataError as error:
        raise DataError(f"{path}: {error}") from None


def need(archive: Archive, names: Sequence[str]) -> None:
    """Insist on arrays of these names."""
    missing = [name for name in names if name not in archive]
    if missing:
        found = ", ".join(archive) or "nothing"
        raise DataError(f"array `{missing[0]}` is missing, found {found}")


def ids(archive: Archive, name: str, n_dim: int = 1) -> NDArray[np.int64]:
    """Take an array of ids, none of them negative and all of them fit for int32."""
    array = whole(archive, name, n_dim)
    if array.size and (array.min() < 0 or array.max() > np.iinfo(np.int32).max):
        raise DataError(f"`{name}` has ids from {array.min()} to {array.max()}, expected int32 ids")
    return array


def whole(archive: Archive, name: str, n_dim: int = 1) -> NDArray[np.int64]:
    """Take an array of whole numbers."""
    array = archive[name]
    if array.ndim != n_dim or array.dtype.kind not in "iu":
        raise DataError(
            f"`{name}` has {array.ndim} dimensions of {array.dtype}, "
            f"expected {n_dim} of an integer type"
        )
    return array.astype(np.int64)


def edges(archive: Archive, n_edges: str) -> NDArray[np.int64]:
    """Take the ids of both ends of each edge; `n_edges` is what the length is called."""
    edge_index = ids(archive, "edge_index", 2)
    if edge_index.shape[0] != 2:
        raise DataError(f"`edge_index` has shape {edge_index.shape}, expected (2, {n_edges})")
    return edge_index


def count(archive: Archive, name: str, **ids: NDArray[np.int64]) -> int:
    """Read a count, or take one more than the largest id; no id may reach the count."""
    if name not in archive:
        return max(int(a.max(initial=-1)) for a in ids.values()) + 1
    if archive[name].size != 1 or archive[name].dtype.kind not in "iu":
        raise DataError(f"`{name}` is not a single whole number")
    count = int(archive[name].item())
    for what, array in ids.items():
        below(what, array, count)
    return count


def below(what: str, ids: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Insist that no id reaches the count."""
    if ids.size and ids.max() >= count:
        raise DataError(f"{what} reach id {ids.max()}, expected ids below {count}")
    return ids


def class_names(archive: Archive, labels: NDArray[np.int64]) -> tuple[str, ...]:
    """Read the names of the classes, or number them; every label needs one."""
    names = np.ravel(archive.get("class_names", np.arange(labels.max(initial=-1) + 1)))
    below("classes", labels, len(names))
    return tuple(str(name) for name in names)


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
