"""Oracle of stores: plain loops over the batch, in float64."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from graphs import GraphData
from reference import Case
from tolerances import Bounded


def cases(graph: GraphData, rng: np.random.Generator) -> Iterator[Case]:
    """Stores have no graph and no derivative: tests/operators/test_history.py has their calls."""
    yield from ()


def _exact(value: np.ndarray) -> Bounded:
    return Bounded(value, 1, np.abs(value))


def pull(store: np.ndarray, ids: np.ndarray, default: float) -> Bounded:
    return _exact(np.array([store[i] if i >= 0 else np.full(store.shape[1:], default) for i in ids])
                  .reshape(len(ids), *store.shape[1:]))  # fmt: skip


def push(
    store: np.ndarray, ids: np.ndarray, rows: np.ndarray, duplicates: str, momentum: float
) -> Bounded:
    new, terms = store.copy(), np.ones_like(store)
    size = np.abs(store)
    for r in set(ids[ids >= 0].tolist()):
        mine = rows[ids == r]
        row = mine.mean(axis=0) if duplicates == "mean" else mine[-1]
        new[r] = row if momentum == 1 else (1 - momentum) * store[r] + momentum * row
        terms[r] = len(mine) + 1
        size[r] = np.abs(mine).max(axis=0) + np.abs(store[r]) * (momentum != 1)
    return Bounded(new, terms, size)


def accumulate(store: np.ndarray, ids: np.ndarray, rows: np.ndarray, scale: float) -> Bounded:
    new, terms, size = store.copy(), np.ones_like(store), np.abs(store)
    for i, r in enumerate(ids.tolist()):
        if r >= 0:
            new[r] += scale * rows[i]
            terms[r] += 1
            size[r] += np.abs(scale * rows[i])
    return Bounded(new, terms, size)


def take(
    store: np.ndarray, ids: np.ndarray, clear: bool, max_norm: float | None
) -> tuple[Bounded, np.ndarray]:
    """What is handed out, and what is left."""
    left, out, seen = store.copy(), np.zeros((len(ids), *store.shape[1:])), set()
    for i, r in enumerate(ids.tolist()):
        if r < 0 or r in seen:
            continue
        seen.add(r)
        out[i] = store[r]
        norm = np.sqrt((store[r] ** 2).sum())
        if max_norm is not None and norm > max_norm:
            out[i] *= max_norm / norm
        if clear:
            left[r] = 0
    return _exact(out), left


def stale(age: np.ndarray, ids: np.ndarray, step: int, max_age: int) -> np.ndarray:
    return np.array([i >= 0 and (age[i] < 0 or step - age[i] > max_age) for i in ids], bool)


def batch_of(kind: str, n_rows: int, n: int, rng: np.random.Generator) -> Any:
    """Ids of one kind: none, increasing, shuffled, repeated, all one row."""
    if kind == "empty":
        return np.empty(0, np.int64)
    if kind == "increasing":
        return np.sort(rng.permutation(n_rows)[:n])
    if kind == "distinct":
        return rng.permutation(n_rows)[:n]
    if kind == "one":
        return np.full(n, n_rows - 1)
    return rng.integers(-1, max(1, n_rows // 2), n)


KINDS = ("empty", "increasing", "distinct", "one", "repeated")
