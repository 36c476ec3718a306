"""Aggregates of per-edge values and their gradients, destination by destination, in float64."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from edgegrad import AggOp
from edgegrad.operator import BATCH
from reference import Arrays, Case
from tolerances import Bounded


@dataclass(frozen=True)
class Aggregate:
    """The result for every destination, its bound, and the winners' positions (-1: none)."""

    bounded: Bounded
    extrema: np.ndarray | None

    @property
    def value(self) -> np.ndarray:
        return self.bounded.value


def aggregate(
    op: AggOp, offsets: np.ndarray, values: np.ndarray, weights: Any = None, divisor: Any = None
) -> Aggregate:
    """Aggregate ``weights * values`` over runs; a mean divides by `divisor` or the count."""
    w = np.ones((len(values), 1)) if weights is None else weights
    v, n = w * values, len(offsets) - 1
    result, size = np.zeros((2, n, values.shape[1]))
    extrema = np.full(result.shape, -1) if op.has_winner else None
    for i in range(n):
        run = slice(offsets[i], offsets[i + 1])
        part = v[run]
        if len(part) == 0:
            continue
        absolute = np.abs(part)
        if op.has_winner:
            at = part.argmax(axis=0) if op is AggOp.Max else part.argmin(axis=0)
            result[i], extrema[i] = part[at, np.arange(part.shape[1])], offsets[i] + at
            size[i] = np.abs(result[i])
        elif op.is_spread:
            result[i] = part.var(axis=0) if op is AggOp.Var else part.std(axis=0)
            # The mean is off by a rounding of the values' size, which enters once squared as well.
            scale = absolute.mean(axis=0)
            deviation = part.std(axis=0) + 2.0**-23 * len(part) * scale
            size[i] = result[i] + scale * (deviation if op is AggOp.Var else 1.0)
        else:
            d = 1.0
            if op is AggOp.Mean:
                d = len(part) if divisor is None else divisor[i]
            if d != 0:
                result[i], size[i] = part.sum(axis=0) / d, absolute.sum(axis=0) / np.abs(d)
    terms = (np.diff(offsets) + 2)[:, None]
    return Aggregate(Bounded(result, terms, size), extrema)


@dataclass(frozen=True)
class EdgeGradient:
    """What comes back to each edge's value, and how large the terms of its rounding are."""

    value: np.ndarray
    size: np.ndarray


def backward(
    op: AggOp,
    offsets: np.ndarray,
    g: np.ndarray,
    *,
    extrema: Any = None,
    values: Any = None,
    output: Any = None,
    divisor: Any = None,
) -> EdgeGradient:
    """The gradient of every edge's (weighted) value."""
    n_edges = int(offsets[-1])
    value, size = np.zeros((2, n_edges, g.shape[1]))
    for i in range(len(offsets) - 1):
        run, n = slice(offsets[i], offsets[i + 1]), offsets[i + 1] - offsets[i]
        if n == 0:
            continue
        if op.has_winner:
            positions = np.arange(offsets[i], offsets[i + 1])[:, None]
            value[run] = np.where(positions == extrema[i].astype(int), g[i], 0.0)
            size[run] = np.abs(value[run])
        elif op.is_spread:
            part = values[run]
            k = np.full(g.shape[1], 2.0 / n)
            if op is AggOp.Std:
                k = np.divide(1.0 / n, output[i], out=np.zeros_like(output[i]), where=output[i] > 0)
            mean, scale = part.mean(axis=0), np.abs(part).mean(axis=0)
            value[run] = k * g[i] * (part - mean)
            size[run] = k * np.abs(g[i]) * (np.abs(part - mean) + scale)
        else:
            d = 1.0
            if op is AggOp.Mean:
                d = n if divisor is None else divisor[i]
            if d != 0:
                value[run], size[run] = g[i] / d, np.abs(g[i] / d)
    return EdgeGradient(value, size)


def scatter(ids: np.ndarray, n: int, grad: EdgeGradient, most_edges: int) -> Bounded:
    """Add up edge gradients by the row they came from."""
    value, size = np.zeros((2, n, grad.value.shape[1]))
    np.add.at(value, ids, grad.value)
    np.add.at(size, ids, grad.size)
    terms = np.bincount(ids, minlength=n)[:, None] + most_edges + 2
    return Bounded(value, terms, size)


def exact(positions: np.ndarray) -> Bounded:
    """Positions, which have no error."""
    return Bounded(positions, 0, np.zeros(positions.shape))


def in_batch(first: Case, second: Case) -> Case:
    """Two calls as one with a batch axis; arrays without that axis are those of the first."""
    args = {a.name: a for a in first.args}

    def has_axis(name: str) -> bool:
        return BATCH in args[name].axes

    def oracle(a: Arrays) -> dict[str, Bounded]:
        parts = [
            c.oracle({k: v[i] if v is not None and has_axis(k) else v for k, v in a.items()})
            for i, c in enumerate((first, second))
        ]
        return {
            name: _joined([p[name] for p in parts], has_axis(name), first.half) for name in parts[0]
        }

    reads = {
        k: np.stack([v, second.reads[k]]) if v is not None and has_axis(k) else v
        for k, v in first.reads.items()
    }
    without = tuple(axis for axis in first.without if axis != BATCH)
    return replace(first, reads=reads, oracle=oracle, without=without)


def _joined(parts: list[Bounded], stacked: bool, half: str) -> Bounded:
    """Results of a batch side by side; of what all of it shares, the gradients add up."""
    if half == "fwd" and not stacked:
        return parts[0]
    values, sizes = [b.value for b in parts], [b.magnitude for b in parts]
    if stacked:
        return Bounded(np.stack(values), parts[0].terms, np.stack(sizes))
    return Bounded(sum(values), sum(b.terms for b in parts), sum(sizes))
