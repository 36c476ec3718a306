"""R-GCN aggregation beside what PyTorch users write: `python scripts/bench/agg_hg_basis.py`.

Rivals, where PyTorch is installed: `loop`, one sparse product per relation, then the combination
by bases (the default path of R-GCN layers of frameworks), with autograd for backward.
Prints median milliseconds of interleaved calls, ratios, and the peak extra memory of both halves.
"""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np

import edgegrad
from edgegrad import operators
from measure import extra_megabytes, milliseconds, stream_bandwidth


class Problem:
    """A random typed graph, features, weights and an upstream gradient, all float32."""

    def __init__(self, nodes: int, edges: int, relations: int, bases: int, dim: int) -> None:
        rng = np.random.default_rng(0)
        self.src, self.dst = rng.integers(0, nodes, (2, edges)).astype(np.int32)
        self.types = rng.integers(0, relations, edges).astype(np.int32)
        self.graph = edgegrad.from_coo(
            self.src, self.dst, nodes, edge_types=self.types, n_edge_types=relations
        )
        self.x = rng.standard_normal((nodes, dim), dtype=np.float32)
        self.weights = rng.standard_normal((relations, bases), dtype=np.float32)
        self.g = rng.standard_normal((nodes, bases * dim), dtype=np.float32)
        self.output = np.zeros_like(self.g)
        self.grads = np.zeros_like(self.x), np.zeros_like(self.weights)

    def forward(self) -> None:
        """Our forward."""
        operators.agg_hg_basis_n2n_post_fwd(self.output, self.x, self.weights, self.graph)

    def backward(self) -> None:
        """Our backward, both gradients."""
        operators.agg_hg_basis_n2n_post_bwd(*self.grads, self.g, self.x, self.weights, self.graph)

    def bytes_moved(self) -> int:
        """Forward, no reuse of gathered rows: ids, types, a row per edge, the output."""
        edges, (nodes, dim) = len(self.src), self.x.shape
        return edges * (4 + 4 + 4 * dim) + nodes * (4 + 4 * self.g.shape[1])


def loop_of_relations(p: Problem) -> Callable[[bool], Any]:
    """One `torch.sparse.mm` per relation; the argument says whether to run backward."""
    import torch

    nodes = len(p.x)
    parts = []
    for r in range(len(p.weights)):
        chosen = p.types == r
        ends = torch.from_numpy(np.stack([p.dst[chosen], p.src[chosen]]).astype(np.int64))
        ones = torch.ones(int(chosen.sum()))
        size = (nodes, nodes)
        parts.append(torch.sparse_coo_tensor(ends, ones, size).coalesce().to_sparse_csr())
    x, weights = torch.from_numpy(p.x.copy()), torch.from_numpy(p.weights.copy())
    g = torch.from_numpy(p.g)

    def run(backward: bool) -> Any:
        x.requires_grad_(backward)
        weights.requires_grad_(backward)
        sums = torch.zeros(nodes, weights.shape[1], x.shape[1])
        for r, part in enumerate(parts):
            sums = sums + weights[r][None, :, None] * (part @ x)[:, None, :]
        if backward:
            sums.flatten(1).backward(g)
        return sums

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (
        ("nodes", 200_000),
        ("edges", 2_000_000),
        ("relations", 40),
        ("bases", 8),
        ("dim", 64),
    ):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rival", action="store_true", help="time the loop over relations too")
    args = parser.parse_args()
    p = Problem(args.nodes, args.edges, args.relations, args.bases, args.dim)

    output_mb = p.output.nbytes / 2**20
    extra = extra_megabytes(lambda: (p.forward(), p.backward()))
    print(f"extra memory of forward + backward, caches of the graph included: {extra:.0f} MiB")
    print(f"the output is {output_mb:.0f} MiB")
    calls: dict[str, Callable[[], object]] = {"forward": p.forward, "backward": p.backward}
    if args.rival and importlib.util.find_spec("torch"):
        run = loop_of_relations(p)
        calls["loop forward"] = lambda: run(False)
        calls["loop forward + backward"] = lambda: run(True)
    times = milliseconds(calls, args.rounds)
    for name, ms in times.items():
        print(f"{name:<24} {ms:9.1f} ms")
    ours = times["forward"] + times["backward"]
    if "loop forward" in times:
        print(f"ratio forward            {times['loop forward'] / times['forward']:9.2f}")
        print(f"ratio forward + backward {times['loop forward + backward'] / ours:9.2f}")
    rate = p.bytes_moved() / times["forward"] * 1e3
    print(f"forward moves {rate / 1e9:.2f} GB/s of the model's bytes", end="")
    print(f"; copying moves {stream_bandwidth() / 1e9:.2f} GB/s")


if __name__ == "__main__":
    main()
