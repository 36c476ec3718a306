"""The countries of the world as a relational graph, from the files of the package countryinfo."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from edgegrad.datasets.entity import EntityGraph
from edgegrad.datasets.errors import DataError, MissingPackageError
from edgegrad.datasets.nodes import Features, NodeGraph

# One relation for each: what kind of entity it leads to, and the field of a record that tells it.
RELATIONS = (
    ("country", "borders"),
    ("language", "languages"),
    ("currency", "currencies"),
    ("time zone", "timezones"),
    ("calling code, first digit", "callingCodes"),
    ("calling code, two digits", "callingCodes"),
)


def countries() -> EntityGraph:
    """Build the graph; the task is the continent of a country.

    Entities are the countries that have an ISO code and a region, and every language, currency,
    time zone and calling-code prefix that one of them has. The package's other fields stay out:
    names of time zones (``Asia/Thimphu``) and subregions would give the answer away.
    """
    by_code: dict[str, list[dict[str, Any]]] = {}
    for record in _records():
        code = record.get("ISO", {}).get("alpha3")
        if code and record.get("region"):
            by_code.setdefault(code, []).append(record)
    codes = sorted(by_code)
    # Kind and text together name an entity: the prefixes "1" of one and of two digits are two.
    ids: dict[tuple[str, str], int] = {("country", code): i for i, code in enumerate(codes)}
    triples = set()
    for subject, code in enumerate(codes):
        # The package has three countries under two names each; their facts are put together.
        for record in by_code[code]:
            for relation, kind, text in _facts(record):
                if kind != "country" or text in by_code:
                    target = ids.setdefault((kind, text), len(ids))
                    triples.add((relation, subject, target))
    table = np.array(sorted(triples), dtype=np.int32)
    regions = [by_code[code][0]["region"] for code in codes]
    class_names, labels = np.unique(regions, return_inverse=True)
    return EntityGraph(
        name="countryinfo",
        n_entities=len(ids),
        n_relations=len(RELATIONS),
        edge_index=np.ascontiguousarray(table[:, 1:].T),
        edge_type=np.ascontiguousarray(table[:, 0]),
        labelled=np.arange(len(codes), dtype=np.int32),
        labels=labels.astype(np.int64),
        class_names=tuple(class_names.tolist()),
        item="country",
        entity_names=tuple(
            by_code[text][0]["name"] if kind == "country" else f"{kind} {text}"
            for kind, text in ids
        ),
    )


def country_graph(seed: int = 0) -> NodeGraph:
    """Leave the kinds of relations out of `countries`, and go along them in both directions.

    The feature of a node is its own number; one labelled node in five is there to learn from.
    """
    data = countries()
    forth = data.edge_index[:, data.edge_index[0] != data.edge_index[1]]
    labels = np.full(data.n_entities, -1, np.int64)
    labels[data.labelled] = data.labels
    parts = {}
    for part, rows in data.split(np.random.default_rng(seed)).items():
        parts[part] = np.zeros(data.n_entities, dtype=bool)
        parts[part][data.labelled[rows]] = True
    return NodeGraph(
        name=data.name,
        edge_index=np.concatenate([forth, forth[::-1]], axis=1),
        features=Features.of(np.eye(data.n_entities)),
        labels=labels,
        class_names=data.class_names,
        parts=parts,
    )


def _records() -> Iterator[dict[str, Any]]:
    # The files are read by path: importing the package would import what it needs for itself.
    spec = find_spec("countryinfo")
    if spec is None or spec.origin is None:
        raise MissingPackageError("countryinfo", "the graph of countries")
    files = sorted(Path(spec.origin).parent.glob("data/*.json"))
    if not files:
        raise DataError(f"{spec.origin}: has no data files beside it, expected countryinfo 1.0.1")
    for file in files:
        yield json.loads(file.read_text(encoding="utf-8"))


def _facts(record: dict[str, Any]) -> Iterator[tuple[int, str, str]]:
    """Give (relation, kind of the object, its text) for all that a country's record says."""
    for relation, (kind, field) in enumerate(RELATIONS):
        for text in record.get(field) or ():
            if field == "callingCodes":
                digits = "".join(c for c in text if c.isdigit())
                text = digits[: 1 if kind.endswith("first digit") else 2]
            if text:
                yield relation, kind, text
