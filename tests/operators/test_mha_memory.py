"""Attention needs memory for nodes, never for edges: peaks are measured."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from mha_calls import KINDS

# Prints how far the peak of a forward and a backward call lies above all arrays of the caller, in
# units of a node array; edge-wise code would need about edges / nodes of them.
SCRIPT = """
import re, sys
from pathlib import Path
import numpy as np
import edgegrad
import edgegrad.operators as ops

kind, n, degree = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
rng = np.random.default_rng(0)
offsets = np.arange(n + 1, dtype=np.int32) * degree
indices = rng.integers(0, n, n * degree, dtype=np.int32)
graph = edgegrad.make_csc(offsets, indices)
x = rng.standard_normal((n, 256), dtype=np.float32)
out, dx, g = (np.full_like(x, 1) for _ in range(3))
stats = np.ones((2, n, 4), np.float32)
if kind == "mha_simple":
    forward, backward = ops.mha_simple_n2n_fwd, ops.mha_simple_n2n_bwd
    arrays, gradients = (x, x, x), (np.full_like(x, 1), np.full_like(x, 1), dx)
else:
    w = rng.standard_normal(512 if kind == "mha_gat" else 256, dtype=np.float32)
    forward, backward = (getattr(ops, f"{kind}_n2n_{half}") for half in ("fwd", "bwd"))
    arrays, gradients = (x, None, w), (dx, None, np.ones_like(w))

def status(field):
    found = re.search(field + r":\\s+(\\d+) kB", Path("/proc/self/status").read_text())
    return int(found[1]) * 1024

Path("/proc/self/clear_refs").write_text("5")
before = status("VmRSS")
forward(out, stats, *arrays, graph, 4)
backward(*gradients, g, *arrays, out, stats, graph, 4)
print((status("VmHWM") - before) / x.nbytes)
"""


def _measured(kind: str, n: int, degree: int) -> float:
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("this system does not tell the peak memory of a process")
    command = [sys.executable, "-c", SCRIPT, kind, str(n), str(degree)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(ran.stdout)


@pytest.mark.parametrize("kind", KINDS)
def test_no_memory_for_edges(kind: str) -> None:
    assert _measured(kind, 6_000, 50) < 3


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_no_memory_for_ten_million_edges(kind: str) -> None:
    """100,000 nodes of 4 heads x 64, where edge-wise code needs 10 GB."""
    assert _measured(kind, 100_000, 100) < 3
