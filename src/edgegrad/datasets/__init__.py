"""Data sets for the training commands."""

from edgegrad.datasets.countries import countries, country_graph
from edgegrad.datasets.digits import digits
from edgegrad.datasets.entity import EntityGraph, load
from edgegrad.datasets.errors import DataError, MissingPackageError
from edgegrad.datasets.nodes import Features, NodeGraph, load_nodes
from edgegrad.datasets.task import Parts, Task

__all__ = [
    "DataError",
    "EntityGraph",
    "Features",
    "MissingPackageError",
    "NodeGraph",
    "Parts",
    "Task",
    "countries",
    "country_graph",
    "digits",
    "load",
    "load_nodes",
]
