"""Values of edges from the rows of their ends, and the gradients, edge by edge in float64."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from edgegrad.operator import HEADS
from edgegrad.operators.sddmm import OPS, SDDMM
from graphs import GraphData
from reference import Arrays, Case
from tolerances import Bounded

Sides = tuple[np.ndarray | None, np.ndarray | None]


def ends(graph: GraphData, a: Arrays) -> Sides:
    """The rows at both ends of every edge."""
    rows = ((a["lhs"], graph.destinations), (a["rhs"], graph.indices))
    lhs, rhs = (None if x is None else x[at] for x, at in rows)
    return lhs, rhs


def values(op: str, lhs: Any, rhs: Any) -> np.ndarray:
    """What forward makes of the rows at both ends."""
    return {
        "dot": lambda: (lhs * rhs).sum(axis=-1),
        "add": lambda: lhs + rhs,
        "sub": lambda: lhs - rhs,
        "mul": lambda: lhs * rhs,
        "div": lambda: lhs / rhs,
        "copy_lhs": lambda: lhs,
        "copy_rhs": lambda: rhs,
    }[op]()


def derivatives(op: str, lhs: Any, rhs: Any) -> tuple[Any, Any]:
    """Of a value, by the channels of both its ends."""
    return {
        "dot": lambda: (rhs, lhs),
        "add": lambda: (1.0, 1.0),
        "sub": lambda: (1.0, -1.0),
        "mul": lambda: (rhs, lhs),
        "div": lambda: (1 / rhs, -lhs / rhs**2),
        "copy_lhs": lambda: (1.0, 0.0),
        "copy_rhs": lambda: (0.0, 1.0),
    }[op]()


def gathered(ids: np.ndarray, n: int, per_edge: np.ndarray) -> np.ndarray:
    """Sums of an edge array by node."""
    sums = np.zeros((n, *per_edge.shape[1:]))
    np.add.at(sums, ids, per_edge)
    return sums


def cases(
    graph: GraphData, rng: np.random.Generator, dim: int = 5, heads: int = 2
) -> Iterator[Case]:
    """Both halves of every op, with and without heads."""
    for op in OPS:
        for lead in ((), (heads,)):
            without = () if lead else (HEADS,)
            reads: dict[str, Any] = {
                "lhs": rng.standard_normal((graph.n_dst, *lead, dim)),
                "rhs": rng.uniform(0.5, 2, (graph.n_src, *lead, dim)),
            }
            shape = (graph.n_edges, *lead, *(() if op == "dot" else (dim,)))
            without += ("[dim_out]",) if op == "dot" else ()
            forward = dict(reads)
            if op.startswith("copy"):
                forward["rhs" if op == "copy_lhs" else "lhs"] = None
            yield _forward_case(graph, op, forward, without)
            reads["grad_output"] = rng.standard_normal(shape)
            yield _backward_case(graph, op, reads, without)


def _forward_case(graph: GraphData, op: str, reads: Arrays, without: tuple[str, ...]) -> Case:
    def oracle(a: Arrays) -> dict[str, Bounded]:
        lhs, rhs = ends(graph, a)
        sizes = (None if x is None else np.abs(x) for x in (lhs, rhs))
        magnitude = values("add" if op == "sub" else op, *sizes)
        terms = reads["lhs"].shape[-1] if op == "dot" else 1
        return {"output": Bounded(values(op, lhs, rhs), terms, magnitude)}

    return Case(SDDMM, "fwd", {"op": op}, reads, oracle, without=without)


def _backward_case(graph: GraphData, op: str, reads: Arrays, without: tuple[str, ...]) -> Case:
    def oracle(a: Arrays) -> dict[str, Bounded]:
        lhs, rhs = ends(graph, a)
        g = a["grad_output"][..., None] if op == "dot" else a["grad_output"]
        by_lhs, by_rhs = (g * d * np.ones_like(lhs) for d in derivatives(op, lhs, rhs))
        result = {}
        for name, ids, n, per_edge in (
            ("grad_lhs", graph.destinations, graph.n_dst, by_lhs),
            ("grad_rhs", graph.indices, graph.n_src, by_rhs),
        ):
            terms = np.bincount(ids, minlength=n).reshape(-1, *[1] * (per_edge.ndim - 1))
            sums, sizes = gathered(ids, n, per_edge), gathered(ids, n, np.abs(per_edge))
            result[name] = Bounded(sums, terms, sizes)
        return result

    return Case(SDDMM, "bwd", {"op": op}, reads, oracle, without=without)
