"""Softmax of edge logits, group by group in float64."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from edgegrad.operator import HEADS
from edgegrad.operators.edge_softmax import EDGE_SOFTMAX, SCOPES
from graphs import GraphData
from reference import Arrays, Case
from tolerances import Bounded


def groups(graph: GraphData, scope: str) -> list[np.ndarray]:
    """Positions of the edges that are normalised together."""
    n_types = max(1, graph.n_types) if scope == "dst_and_type" else 1
    types = graph.edge_types if scope == "dst_and_type" else 0
    keys = graph.destinations * n_types + types
    return [np.flatnonzero(keys == key) for key in np.unique(keys)]


def forward(graph: GraphData, logits: np.ndarray, scope: str) -> np.ndarray:
    """The coefficients."""
    y = np.empty_like(logits)
    for group in groups(graph, scope):
        x = logits[group]
        with np.errstate(invalid="ignore", divide="ignore"):
            e = np.exp(x - x.max(axis=0))
            y[group] = e / e.sum(axis=0)
    return y


def backward(graph: GraphData, g: np.ndarray, y: np.ndarray, scope: str) -> np.ndarray:
    """The gradient of the logits."""
    dx = np.empty_like(y)
    for group in groups(graph, scope):
        dx[group] = y[group] * (g[group] - (y[group] * g[group]).sum(axis=0))
    return dx


def cases(graph: GraphData, rng: np.random.Generator, heads: int = 3) -> Iterator[Case]:
    """Both halves of both scopes, with and without heads."""
    for scope in SCOPES:
        for lead in ((), (heads,)):
            logits = 3 * rng.standard_normal((graph.n_edges, *lead))
            g = rng.standard_normal((graph.n_edges, *lead))
            without = () if lead else (HEADS,)
            yield _forward_case(graph, scope, {"logits": logits}, without)
            reads = {"grad_output": g, "output": forward(graph, logits, scope)}
            yield _backward_case(graph, scope, reads, without)


def _forward_case(graph: GraphData, scope: str, reads: Arrays, without: tuple[str, ...]) -> Case:
    def oracle(a: Arrays) -> dict[str, Bounded]:
        y = forward(graph, a["logits"], scope)
        # A rounding of x - m by a fraction of its own size is one of y by that size.
        magnitude = y * (1 + np.abs(np.log(np.maximum(y, 1e-300))))
        return {"output": Bounded(y, _terms(graph, y), magnitude)}

    return Case(EDGE_SOFTMAX, "fwd", {"scope": scope}, reads, oracle, "csc_hg", without)


def _backward_case(graph: GraphData, scope: str, reads: Arrays, without: tuple[str, ...]) -> Case:
    def oracle(a: Arrays) -> dict[str, Bounded]:
        g, y = a["grad_output"], a["output"]
        sizes = backward(graph, -np.abs(g), y, scope) + 2 * y * np.abs(g)
        value = backward(graph, g, y, scope)
        return {"grad_logits": Bounded(value, _terms(graph, y), sizes)}

    return Case(EDGE_SOFTMAX, "bwd", {"scope": scope}, reads, oracle, "csc_hg", without)


def _terms(graph: GraphData, y: np.ndarray) -> np.ndarray:
    degree = np.diff(graph.offsets)[graph.destinations]
    return degree.reshape(-1, *[1] * (y.ndim - 1))
