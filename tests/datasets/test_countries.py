from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest

from edgegrad.datasets import MissingPackageError, countries

needs_countryinfo = pytest.mark.skipif(
    find_spec("countryinfo") is None, reason="needs the package countryinfo (extra `demo`)"
)


@needs_countryinfo
def test_graph_of_countries() -> None:
    graph = countries()
    assert (graph.n_entities, graph.n_relations, graph.n_triples) == (652, 6, 1992)
    assert graph.class_names == ("Africa", "Americas", "Asia", "Europe", "Oceania")
    assert np.bincount(graph.labels).tolist() == [60, 58, 51, 52, 28]
    subjects, objects = graph.edge_index
    # Every fact is about a country, is told once, and only a border leads to a country again.
    assert subjects.max() == 248
    assert len(np.unique([graph.edge_type, subjects, objects], axis=1).T) == graph.n_triples
    assert ((objects < 249) == (graph.edge_type == 0)).all()
    assert len(set(graph.entity_names)) == graph.n_entities

    named = [(graph.label_of(s), graph.label_of(o)) for s, o in zip(subjects, objects, strict=True)]
    bhutan = {o for s, o in named if s == "Bhutan"}
    assert bhutan == {
        "China",
        "India",
        "language dz",
        "currency BTN",
        "currency INR",
        "time zone UTC+06:00",
        "calling code, first digit 9",
        "calling code, two digits 97",
    }


@needs_countryinfo
def test_split_is_drawn_by_seed() -> None:
    graph = countries()
    first, again, other = (graph.split(np.random.default_rng(seed))["train"] for seed in (0, 0, 1))
    assert first.sum() == 50  # 20 % of 249
    assert (first == again).all()
    assert (first != other).any()


def test_missing_package_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(countries.__globals__, "find_spec", lambda name: None)
    with pytest.raises(MissingPackageError, match=r'countryinfo: pip install "edgegrad\[demo\]"$'):
        countries()
