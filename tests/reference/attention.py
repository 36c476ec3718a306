"""Attention by edges, in float64: what the three families share.

Beside every result goes a magnitude: the sizes of what is added up, each term as often as the
roundings of its logit may change it. With it `Bounded` gives the error that rounding may make.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphs import GraphData
from reference import Arrays, Case
from tolerances import Bounded

ACTIVATIONS = ("linear", "relu", "sigmoid", "tanh", "elu", "scalar", "leaky_relu")


def activate(name: str, z: np.ndarray, alpha: float) -> tuple[np.ndarray, np.ndarray]:
    """Value and derivative."""
    one = np.ones_like(z)
    if name == "relu":
        return np.maximum(z, 0), (z > 0) * one
    if name == "sigmoid":
        s = 1 / (1 + np.exp(-z))
        return s, s * (1 - s)
    if name == "tanh":
        return np.tanh(z), 1 - np.tanh(z) ** 2
    if name == "elu":
        return np.where(z > 0, z, np.expm1(np.minimum(z, 0))), np.exp(np.minimum(z, 0))
    if name == "scalar":
        return alpha * z, alpha * one
    if name == "leaky_relu":
        return np.where(z > 0, z, alpha * z), np.where(z > 0, 1.0, alpha)
    return z, one


@dataclass
class Sized:
    """Values, and the magnitudes that bound their rounding."""

    value: np.ndarray
    size: np.ndarray

    def __mul__(self, other: Sized) -> Sized:
        return Sized(self.value * other.value, self.size * other.size)

    def __add__(self, other: Sized) -> Sized:
        return Sized(self.value + other.value, self.size + other.size)

    def __sub__(self, other: Sized) -> Sized:
        return Sized(self.value - other.value, self.size + other.size)

    def __getitem__(self, key: Any) -> Sized:
        return Sized(self.value[key], self.size[key])

    def map(self, f: Any) -> Sized:
        """A linear function with weights that are not negative, of both."""
        return Sized(f(self.value), f(self.size))


def exact(a: Any) -> Sized:
    """An input."""
    a = np.asarray(a, np.float64)
    return Sized(a, np.abs(a))


def heads_of(a: np.ndarray, heads: int) -> np.ndarray:
    """(n, heads, columns of a head)"""
    return a.reshape(len(a), heads, a.shape[1] // heads)


def sum_columns(a: Sized) -> Sized:
    """Sum over a head's columns: (edges, heads, columns) -> (edges, heads)."""
    return a.map(lambda v: v.sum(axis=-1))


def flat(a: Sized) -> Sized:
    """Heads side by side."""
    return a.map(lambda v: v.reshape(len(v), math.prod(v.shape[1:])))


def concatenate(parts: list[Sized]) -> Sized:
    return Sized(*(np.concatenate([getattr(p, k) for p in parts]) for k in ("value", "size")))


def add_own(src: Sized, dst: Sized) -> Sized:
    """Add to the first rows of `src`."""
    more = [(0, len(src.value) - len(dst.value)), (0, 0)]
    return src + dst.map(lambda v: np.pad(v, more))


def activated(name: str, z: Sized, alpha: float) -> tuple[Sized, Sized]:
    """Value and slope; how far rounding of z moves them depends on how steep and bent they are."""
    value, slope = activate(name, z.value, alpha)
    steepest = max(1.0, abs(alpha))
    bent = z.size if name in ("sigmoid", "tanh", "elu") else 0.0
    return (
        Sized(value, steepest * z.size + np.abs(value) + (name in ("sigmoid", "tanh", "elu"))),
        Sized(slope, np.abs(slope) + bent),
    )


@dataclass
class Attention:
    """Softmax attention of given logits and values, both per edge in CSC order."""

    graph: GraphData
    heads: int
    concat: bool
    logits: Sized  # (edges, heads), before the bias
    values: Sized  # (edges, heads, columns)
    factors: np.ndarray  # (edges, heads), dropout
    bias: np.ndarray | None

    def __post_init__(self) -> None:
        dst, n = self.graph.destinations, self.graph.n_dst
        logits, size = self.logits.value, self.logits.size
        if self.bias is not None:
            logits = np.where(np.isneginf(self.bias), -np.inf, logits + self.bias)
            size = size + np.where(np.isneginf(self.bias), 0, np.abs(self.bias))
        self.max = np.full((n, self.heads), -np.inf)
        np.maximum.at(self.max, dst, logits)
        finite = np.where(np.isneginf(self.max), 0.0, self.max)
        e = np.exp(logits - finite[dst])
        self.sum = np.zeros((n, self.heads))
        np.add.at(self.sum, dst, e)
        largest = np.zeros((n, self.heads))
        np.maximum.at(largest, dst, size)
        alpha = e / np.where(self.sum == 0, 1.0, self.sum)[dst]
        self.alpha = Sized(alpha, alpha * (1 + size + largest[dst]))
        self.kept = self.alpha * exact(self.factors)

    def to_rows(self, a: Sized, ends: np.ndarray, n: int) -> Sized:
        """Add up edges by their end."""

        def add(v: np.ndarray) -> np.ndarray:
            total = np.zeros((n, *v.shape[1:]))
            np.add.at(total, ends, v)
            return total

        return a.map(add)

    def by_dst(self, a: Sized) -> Sized:
        return self.to_rows(a, self.graph.destinations, self.graph.n_dst)

    def by_src(self, a: Sized) -> Sized:
        return self.to_rows(a, self.graph.indices, self.graph.n_src)

    def output(self) -> Sized:
        """(destinations, columns), heads side by side or averaged."""
        o = self.by_dst(self.kept.map(lambda v: v[..., None]) * self.values)
        if not self.concat:
            return o.map(lambda v: v.mean(axis=1))
        return flat(o)

    def stats(self) -> np.ndarray:
        return np.stack([self.max, self.sum])

    def attention(self) -> Sized:
        """(heads, edges), by edge id."""
        return self.kept.map(lambda v: by_edge_id(self.graph, v).T)

    def upstream(self, grad_output: np.ndarray) -> Sized:
        """Per edge, what reaches its values."""
        g = grad_output
        if not self.concat:
            g = np.repeat(g[:, None] / self.heads, self.heads, axis=1).reshape(
                len(g), self.heads * g.shape[1]
            )
        return exact(heads_of(g, self.heads)[self.graph.destinations])

    def deltas(self, grad_output: np.ndarray, grad_attention: np.ndarray | None) -> Sized:
        """Gradient of every logit."""
        d = sum_columns(self.upstream(grad_output) * self.values)
        if grad_attention is not None:
            d = d + exact(by_position(self.graph, grad_attention.T))
        # Gradients are added up as differences from a constant of the row, as large as these.
        shift = np.zeros((self.graph.n_dst, self.heads))
        np.maximum.at(shift, self.graph.destinations, d.size)
        d = d * exact(self.factors)
        d.size = d.size + shift[self.graph.destinations]
        mean = self.by_dst(self.alpha * d)
        return self.alpha * (d - mean[self.graph.destinations])

    def value_gradients(self, grad_output: np.ndarray) -> Sized:
        """What each edge sends to its value."""
        return self.kept.map(lambda v: v[..., None]) * self.upstream(grad_output)


def edge_ids(graph: GraphData) -> np.ndarray:
    return np.arange(graph.n_edges) if graph.edge_ids is None else graph.edge_ids


def by_position(graph: GraphData, a: np.ndarray) -> np.ndarray:
    """An array by edge id, in CSC order."""
    return a[edge_ids(graph)]


def by_edge_id(graph: GraphData, a: np.ndarray) -> np.ndarray:
    """An array in CSC order, by edge id."""
    result = np.empty_like(a)
    result[edge_ids(graph)] = a
    return result


def factors(graph: GraphData, heads: int, mask: np.ndarray | None, p: float = 0.0) -> np.ndarray:
    """Dropout factors in CSC order; booleans are worth 1 / (1 - p)."""
    if mask is None:
        return np.ones((graph.n_edges, heads))
    scale = 1.0
    if mask.dtype == bool:
        scale = 0.0 if p == 1 else 1 / (1 - p)
    return by_position(graph, mask.T) * scale


def grid(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Normal numbers that every feature type holds exactly, so that what forward saved fits."""
    return np.round(rng.standard_normal(shape) * 8) / 8


def option_sets(activations: bool) -> Iterator[dict[str, Any]]:
    """Heads, concat, activation; and which optional arrays there are."""
    yield {"num_heads": 2}
    yield {"num_heads": 1, "bias": True, "edges": True, "attention": True}
    yield {"num_heads": 3, "concat_heads": False, "mask": True, "attention": True}
    everything = {"edges": True, "mask": True, "bias": True, "attention": True, "dst": True}
    yield {"num_heads": 2, "concat_heads": False, **everything}
    yield {"num_heads": 3, "no_output": True, **everything}
    for name in ACTIVATIONS if activations else ():
        yield {"num_heads": 2, "activation": name, "activation_alpha": -0.5, "edges": True}


def optional_arrays(
    graph: GraphData, rng: np.random.Generator, chosen: Mapping[str, Any], edge_width: int
) -> Arrays:
    """Edge features, mask and bias where they are chosen."""
    heads, n = chosen["num_heads"], graph.n_edges
    bias = grid(rng, n, heads)
    bias[rng.random((n, heads)) < 0.15] = -np.inf
    mask = (rng.random((heads, n)) < 0.7) * 1.25
    return {
        "edge_embedding": grid(rng, n, edge_width) if "edges" in chosen else None,
        "dropout_mask": mask if "mask" in chosen else None,
        "edge_bias": bias if "bias" in chosen else None,
    }


def options_of(chosen: Mapping[str, Any]) -> dict[str, Any]:
    """What is an option of the function itself."""
    names = ("num_heads", "concat_heads", "activation", "activation_alpha", "norm_by_dim")
    return {name: chosen[name] for name in names if name in chosen}


# ---- cases


@dataclass(frozen=True)
class Oracle:
    """An operator: its inputs, its attention, and the gradients it gives."""

    op: Any
    inputs: Any  # (graph, rng, chosen) -> arrays by name
    attend: Any  # (graph, arrays, options) -> Attention
    gradients: Any  # (attention, arrays, options) -> Sized by name


def forward(oracle: Oracle, graph: GraphData, a: Arrays, options: Any) -> dict[str, Bounded]:
    """All that forward writes."""
    at = oracle.attend(graph, a, options)
    output, attention, stats = at.output(), at.attention(), at.stats()
    size = np.zeros((graph.n_dst, at.heads))
    np.maximum.at(size, graph.destinations, at.logits.size + 1)
    degree = np.diff(graph.offsets)
    n = terms(graph, a)
    return {
        "output_embedding": Bounded(output.value, n + degree[:, None], output.size),
        "attention": Bounded(attention.value, n + degree.max(initial=0), attention.size),
        "softmax_stats": Bounded(
            stats, n + degree[None, :, None], np.stack([size, at.sum * (1 + 2 * size)])
        ),
    }


def backward(oracle: Oracle, graph: GraphData, a: Arrays, options: Any) -> dict[str, Bounded]:
    """All that backward writes."""
    at = oracle.attend(graph, a, options)
    found = oracle.gradients(at, a, options)
    deltas = at.deltas(a["grad_output"], a["grad_attention"])
    found["grad_edge_bias"] = deltas.map(lambda v: by_edge_id(graph, v))
    # Sums of every kind are at most this long.
    n = terms(graph, a) + graph.n_edges + max(graph.n_src, graph.n_dst)
    return {name: Bounded(s.value, n, s.size) for name, s in found.items()}


def terms(graph: GraphData, a: Arrays) -> int:
    """Terms of a logit and of what else is summed over columns."""
    return 8 + 2 * sum(x.shape[1] for x in a.values() if x is not None and np.ndim(x) == 2)


def cases(
    oracle: Oracle, graph: GraphData, rng: np.random.Generator, activations: bool
) -> Iterator[Case]:
    """Both halves under many combinations of options."""
    for chosen in option_sets(activations):
        if graph.bipartite:
            chosen = {**chosen, "dst": True}
        options = options_of(chosen)
        reads = oracle.inputs(graph, rng, chosen)
        written = forward(oracle, graph, reads, options)
        wanted = {"output_embedding", *(("softmax_stats",) if len(chosen) > 1 else ())}
        wanted |= {"attention"} if "attention" in chosen else set()

        def oracle_fwd(a: Arrays, options: Any = options, wanted: Any = wanted) -> Any:
            found = forward(oracle, graph, a, options)
            return {name: b for name, b in found.items() if name in wanted}

        yield Case(oracle.op, "fwd", options, reads, oracle_fwd)
        output = written["output_embedding"].value
        attention = grid(rng, options["num_heads"], graph.n_edges)
        kept = {
            **reads,
            "grad_output": grid(rng, *output.shape),
            "grad_attention": attention if "attention" in chosen else None,
            "output_embedding": None if "no_output" in chosen else output,
            "softmax_stats": written["softmax_stats"].value,
        }

        def oracle_bwd(a: Arrays, options: Any = options) -> Any:
            return backward(oracle, graph, a, options)

        yield Case(oracle.op, "bwd", options, kept, oracle_bwd)
