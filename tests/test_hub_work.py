"""No operator leaves a hub to one block: what only the CPU run of CUDA kernels can count."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import calls
import devices
import graphs
import simt

NODES, EDGES = 1000, 24_000
LEAST_BLOCKS = 4  # fewer cannot differ in a way that matters


@pytest.fixture(scope="module")
def hubs() -> graphs.GraphData:
    """One destination has half of all edges, one source has the other half."""
    rng = np.random.default_rng(3)
    src, dst = rng.integers(0, NODES, (2, EDGES))
    dst[: EDGES // 2], src[EDGES // 2 :] = 3, 7
    return graphs.from_edges(src, dst, NODES, NODES)


@pytest.mark.parametrize(("op", "half"), calls.functions(), ids=calls.function_id)
def test_no_block_waits_for_a_hub(
    op: Any, half: str, hubs: graphs.GraphData, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The longest block makes at most four times the accesses of the mean one."""
    if not op.graphs:
        pytest.skip("takes no graph")
    device = devices.Simt()
    launches = simt.install(monkeypatch)
    for case in itertools.islice(calls.covering(op, half, hubs), 3):
        made = calls.make(case, hubs, device)
        made.launch()  # builds what the graph lacks
        launches.clear()
        made.launch()
        assert launches, case.name
        for record in launches:
            if np.prod(record.grid) >= LEAST_BLOCKS:
                assert record.work_max <= 4 * record.work_mean, (case.name, record)
