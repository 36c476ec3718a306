"""Attention against its oracles, on every device."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import graphs
import reference

FAMILIES = pytest.mark.parametrize("family", ["mha_gat", "mha_gat_v2", "mha_simple"])


def _cases(family: str, graph: graphs.GraphData) -> list[reference.Case]:
    module = importlib.import_module(f"reference.{family}")
    return list(module.cases(graph, np.random.default_rng(7)))


@FAMILIES
@pytest.mark.parametrize("name", graphs.NAMES)
def test_every_option(device: Any, T: Any, family: str, name: str) -> None:
    graph = graphs.make(name)
    struct = graph.make(device, kind="csc")
    for case in _cases(family, graph):
        ran = reference.run(case, graph, device, T, struct=struct)
        assert ran.worst() <= 1, case.name
