"""Products on a GPU beside cuSPARSE and PyTorch: `python scripts/bench/gpu.py [--json]`.

Synthetic graphs of fixed seeds, in the shapes of arxiv, products and Reddit; float32, 64 columns,
weighted. Median milliseconds by events of interleaved calls; eta_dram and eta_gather are the bytes
of the model (every byte once; a row of features for every edge) over time and copy bandwidth.
Rivals that are not installed are left out.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
from collections.abc import Callable
from typing import Any

import numpy as np

import edgegrad
from edgegrad import operators

# Nodes, edges, exponents of the popularity of destinations and sources.
GRAPHS = {
    "arxiv": (169_343, 1_166_243, 0.65, 0.75),
    "products": (2_449_029, 61_859_140, 0.6, 0.6),
    "reddit": (232_965, 57_307_946, 0.6, 0.6),
}
DIM = 64


def milliseconds(cp: Any, calls: dict[str, Callable[[], object]], rounds: int = 9) -> dict:
    """Median time of each call on the device; rounds take turns."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()
    for _ in range(rounds):
        for name, call in calls.items():
            begin, end = cp.cuda.Event(), cp.cuda.Event()
            begin.record()
            call()
            end.record()
            end.synchronize()
            times[name].append(cp.cuda.get_elapsed_time(begin, end))
    return {name: float(np.median(t)) for name, t in times.items()}


def copy_bandwidth(cp: Any) -> float:
    """Bytes per second, read and written, of a copy larger than any cache."""
    source = cp.ones(1 << 28, cp.float32)
    target = cp.empty_like(source)
    ms = milliseconds(cp, {"copy": lambda: cp.copyto(target, source)})["copy"]
    return 2 * source.nbytes / ms * 1e3


def make(cp: Any, name: str) -> Any:
    """A graph whose ends are drawn by the popularity of nodes, ids in no order."""
    nodes, edges, *exponents = GRAPHS[name]
    rng = cp.random.RandomState(7)
    ends = []
    for exponent in exponents:
        cumulative = cp.cumsum((cp.arange(nodes) + 10.0) ** -exponent)
        drawn = cp.searchsorted(cumulative, rng.random_sample(edges) * cumulative[-1])
        ends.append(rng.permutation(nodes)[cp.minimum(drawn, nodes - 1)].astype(cp.int32))
    dst, src = ends
    return edgegrad.from_coo(src, dst, nodes)


def rivals(cp: Any, graph: Any, w: Any, x: Any) -> dict[str, Callable[[], object]]:
    """The same product by cuSPARSE through CuPy, and by PyTorch where it has CUDA."""
    import cupyx.scipy.sparse as sparse

    n = graph.n_dst_nodes
    offsets, indices = (cp.from_dlpack(a) for a in (graph.offsets, graph.indices))
    matrix = sparse.csr_matrix((w, indices, offsets), shape=(n, n))
    calls: dict[str, Callable[[], object]] = {"cusparse": lambda: matrix @ x}
    if importlib.util.find_spec("torch"):
        import torch

        if torch.cuda.is_available():
            parts = (torch.from_dlpack(a) for a in (offsets, indices, w))
            csr, dense = torch.sparse_csr_tensor(*parts, size=(n, n)), torch.from_dlpack(x)
            calls["torch"] = lambda: csr @ dense
    return calls


def measure(cp: Any, name: str, bandwidth: float) -> list[dict[str, Any]]:
    """One row for each operator on a graph."""
    graph, rng = make(cp, name), cp.random.RandomState(1)
    n, edges = graph.n_dst_nodes, graph.n_indices
    x, g = (rng.standard_normal((n, DIM)).astype(cp.float32) for _ in range(2))
    w, dw = rng.standard_normal(edges).astype(cp.float32), cp.empty(edges, cp.float32)
    y, dx = cp.empty_like(x), cp.empty_like(x)
    ours = {
        "spmm": lambda: operators.spmm_fwd(y, w, x, graph),
        "spmm backward": lambda: operators.spmm_bwd(dw, dx, g, w, x, graph),
        "sddmm": lambda: operators.sddmm_fwd(dw, g, x, graph),
    }
    others = rivals(cp, graph, w, x)
    times = milliseconds(cp, {**ours, **others})
    head, ids, rows = 4 * (n + 1), 8 * edges, 4 * n * DIM
    least, gathered = head + ids + 2 * rows, head + ids + 4 * edges * DIM + rows
    table = []
    for operator in ours:
        row = {"graph": name, "operator": operator, "ms": f"{times[operator]:.3f}"}
        once = operator == "spmm"  # the model is that of one product
        seconds = times[operator] / 1e3
        row["eta_dram"] = f"{least / seconds / bandwidth:.2f}" if once else ""
        row["eta_gather"] = f"{gathered / seconds / bandwidth:.2f}" if once else ""
        for rival in ("cusparse", "torch"):
            known = once and rival in others
            row[f"{rival} / ours"] = f"{times[rival] / times[operator]:.2f}" if known else ""
        table.append(row)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description="Time products on a GPU.")
    parser.add_argument("--json", action="store_true", help="one line for a program")
    parser.add_argument("--graphs", nargs="+", choices=GRAPHS, default=list(GRAPHS))
    arguments = parser.parse_args()
    import cupy as cp

    bandwidth = copy_bandwidth(cp)
    rows = [row for name in arguments.graphs for row in measure(cp, name, bandwidth)]
    if arguments.json:
        print(json.dumps({"copy_gb_s": bandwidth / 1e9, "rows": rows}))
        return
    for row in rows:
        print("  ".join(f"{k} {v}" for k, v in row.items() if v))


if __name__ == "__main__":
    main()
