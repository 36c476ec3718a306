"""A hub beside an even graph of the same size: `python scripts/bench/hub.py`.

In the hub graph one destination has half of all edges; in the even one every destination has about
the same number. Sources are the same in both. Prints median milliseconds of interleaved calls and
their ratio, float32.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np

import edgegrad
from edgegrad import AggOp, operators
from edgegrad.graph import Graph
from measure import milliseconds

Call = Callable[[], object]


def calls(graph: Graph, dim: int, heads: int) -> dict[str, Call]:
    """Every kernel of the catalogue, forward and backward, by name."""
    rng = np.random.default_rng(1)
    n, edges = graph.n_dst_nodes, graph.n_indices
    x, g, y, dx = (rng.standard_normal((n, dim), dtype=np.float32) for _ in range(4))
    w, dw = (rng.standard_normal(edges, dtype=np.float32) for _ in range(2))
    logits, alpha, dlogits = (
        rng.standard_normal((edges, heads), dtype=np.float32) for _ in range(3)
    )
    places = np.zeros((n, dim), np.int32)
    operators.spmm_fwd(y, w, x, graph, reduce=AggOp.Max, extrema=places)
    operators.edge_softmax_fwd(alpha, logits, graph)
    won = {"reduce": AggOp.Max, "extrema": places}
    ops = operators
    return {
        "agg_simple sum": lambda: ops.agg_simple_n2n_fwd(y, x, graph, AggOp.Sum),
        "agg_simple std": lambda: ops.agg_simple_n2n_fwd(y, x, graph, AggOp.Std),
        "spmm sum": lambda: ops.spmm_fwd(y, w, x, graph),
        "spmm sum, backward": lambda: ops.spmm_bwd(dw, dx, g, w, x, graph),
        "spmm max": lambda: ops.spmm_fwd(y, w, x, graph, **won),
        "spmm max, backward": lambda: ops.spmm_bwd(dw, dx, g, w, x, graph, **won),
        "sddmm dot": lambda: ops.sddmm_fwd(dw, g, x, graph),
        "sddmm dot, backward": lambda: ops.sddmm_bwd(y, dx, w, g, x, graph),
        "edge_softmax": lambda: ops.edge_softmax_fwd(alpha, logits, graph),
        "edge_softmax, backward": lambda: ops.edge_softmax_bwd(dlogits, logits, alpha, graph),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Time a hub beside an even graph.")
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--edges", type=int, default=2_000_000)
    parser.add_argument("--dim", type=int, default=64)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=7)
    a = parser.parse_args()
    rng = np.random.default_rng(0)
    src, even = rng.integers(0, a.nodes, (2, a.edges)).astype(np.int32)
    hub = even.copy()
    hub[: a.edges // 2] = a.nodes // 3
    both = [calls(edgegrad.from_coo(src, dst, a.nodes), a.dim, a.heads) for dst in (even, hub)]
    print(f"{'':<24} {'even':>9} {'hub':>9}  ratio")
    for name in both[0]:
        times = milliseconds({"even": both[0][name], "hub": both[1][name]}, a.rounds)
        even_ms, hub_ms = times.values()
        print(f"{name:<24} {even_ms:6.1f} ms {hub_ms:6.1f} ms {hub_ms / even_ms:6.2f}", flush=True)


if __name__ == "__main__":
    main()
