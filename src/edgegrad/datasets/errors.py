"""What can go wrong with data, told in one line each."""

from __future__ import annotations


class DataError(ValueError):
    """A data set that is not there or not what it should be."""


class MissingPackageError(ImportError):
    """An optional package is not installed; the message names the command that installs it."""

    def __init__(self, package: str, purpose: str) -> None:
        super().__init__(
            f'{purpose} needs the package {package}: pip install "edgegrad[demo]"', name=package
        )
