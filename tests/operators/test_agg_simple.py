"""Simple aggregation against its oracle, on every device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphs
import reference
from reference import agg_simple


def _cases(graph: graphs.GraphData, **sizes: int) -> list[reference.Case]:
    return list(agg_simple.cases(graph, np.random.default_rng(7), **sizes))


@pytest.mark.parametrize("name", graphs.NAMES)
def test_every_operation(device: Any, T: Any, name: str) -> None:
    graph = graphs.make(name)
    struct = graph.make(device, kind="csc")
    for case in _cases(graph):
        ran = reference.run(case, graph, device, T, struct=struct)
        assert ran.worst() <= 1, case.name
