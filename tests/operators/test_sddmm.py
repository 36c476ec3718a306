"""Values of edges and their gradients against the oracle, on every device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import devices
import graphs
import reference
from edgegrad.operators import sddmm_bwd, sddmm_fwd
from edgegrad.operators.sddmm import OPS
from reference import sddmm

FLOAT32 = np.dtype(np.float32)


def _cases(graph: graphs.GraphData, **sizes: int) -> list[reference.Case]:
    return list(sddmm.cases(graph, np.random.default_rng(7), **sizes))


@pytest.mark.parametrize("name", graphs.NAMES)
def test_every_op(device: Any, T: Any, name: str) -> None:
    graph = graphs.make(name)
    struct = graph.make(device)
    for case in _cases(graph, dim=3):
        ran = reference.run(case, graph, device, T, struct=struct)
        assert ran.worst() <= 1, case.name
