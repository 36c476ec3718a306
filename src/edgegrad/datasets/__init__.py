"""Data sets for the training commands."""

from edgegrad.datasets.countries import countries
from edgegrad.datasets.entity import EntityGraph, load
from edgegrad.datasets.errors import DataError, MissingPackageError

__all__ = ["DataError", "EntityGraph", "MissingPackageError", "countries", "load"]
