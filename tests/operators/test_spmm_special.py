"""The sparse product with a gradient of its entries that attention layers use, in every shape."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from typing import Any

import numpy as np
import pytest

import edgegrad
from edgegrad import operators

SHAPES = {
    "square": (6, 6, 20),
    "wide": (3, 40, 50),
    "tall": (40, 3, 50),
    "one row": (1, 9, 12),
    "no entries": (4, 5, 0),
    "no rows": (0, 5, 0),
}


@pytest.mark.parametrize("name", SHAPES)
def test_entries_and_operand(device: Any, IdxT: Any, name: str) -> None:
    """Entries at random, some of them more than once; each counts and has its own gradient."""
    m, n, entries = SHAPES[name]
    rng = np.random.default_rng(0)
    row, column = rng.integers(0, max(m, 1), entries), rng.integers(0, n, entries)
    row[1:2], column[1:2] = row[:1], column[:1]
    graph = edgegrad.from_coo(
        device.array(column.astype(IdxT)), device.array(row.astype(IdxT)), n, m, bipartite=True
    )
    place = np.argsort(row, kind="stable")  # of each CSC position in the order given
    a, b, g = (rng.standard_normal(shape) for shape in (entries, (n, 5), (m, 5)))
    product = device.poisoned((m, 5), np.float64)
    grad_a, grad_b = device.poisoned(entries, np.float64), device.poisoned((n, 5), np.float64)
    values, dense, upstream = (device.array(x) for x in (a[place], b, g))
    operators.spmm_fwd(product, values, dense, graph)
    operators.spmm_bwd(grad_a, grad_b, upstream, values, dense, graph)

    matrix = np.zeros((m, n))
    np.add.at(matrix, (row, column), a)
    close = {"rtol": 1e-13, "atol": 1e-13}
    np.testing.assert_allclose(device.numpy(product), matrix @ b, **close)
    np.testing.assert_allclose(device.numpy(grad_b), matrix.T @ g, **close)
    expected = np.einsum("ed,ed->e", g[row], b[column])
    np.testing.assert_allclose(device.numpy(grad_a), expected[place], **close)


@pytest.mark.skipif(sys.platform != "linux", reason="units of ru_maxrss differ")
def test_memory_grows_with_entries() -> None:
    """1e5 x 1e5 with 1e6 entries: a dense gradient of the matrix would take 40 GB."""
    script = """
        import resource
        import numpy as np
        import edgegrad
        from edgegrad import operators

        n, entries, dim = 100_000, 1_000_000, 64
        rng = np.random.default_rng(0)
        column, row = rng.integers(0, n, (2, entries)).astype(np.int32)
        graph = edgegrad.from_coo(column, row, n)
        a = rng.standard_normal(entries, dtype=np.float32)
        b, g = rng.standard_normal((2, n, dim), dtype=np.float32)
        product, grad_b, grad_a = np.empty_like(b), np.empty_like(b), np.full_like(a, np.nan)
        operators.spmm_fwd(product, a, b, graph)
        operators.spmm_bwd(grad_a, grad_b, g, a, b, graph)
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)

        few = np.arange(0, entries, 997)
        place = np.asarray(graph.map_csc_to_coo)[few]
        exact = (g[row[place]].astype(float) * b[column[place]]).sum(axis=1)
        np.testing.assert_allclose(grad_a[few], exact, rtol=0, atol=1e-4)
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert float(ran.stdout) < 1000, "megabytes"
