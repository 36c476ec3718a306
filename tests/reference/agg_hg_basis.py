"""R-GCN aggregation as one sparse product per edge type, in float64."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from edgegrad.operator import BATCH
from edgegrad.operators.agg_hg_basis import AGG_HG_BASIS
from graphs import GraphData
from reference import Arrays, Case
from tolerances import Bounded


def factors(graph: GraphData, edge_weight: Any, norm: bool) -> np.ndarray:
    """What each edge is multiplied by: its weight over its number of like edges."""
    return _norms(graph, norm) * (1.0 if edge_weight is None else edge_weight)


def _norms(graph: GraphData, norm: bool) -> np.ndarray:
    if not norm:
        return np.ones(graph.n_edges)
    keys = graph.destinations * max(1, graph.n_types) + graph.edge_types
    _, inverse, count = np.unique(keys, return_inverse=True, return_counts=True)
    return 1.0 / count[inverse]


def _by_type(graph: GraphData, k: np.ndarray) -> list[Any]:
    """The adjacency of every type, with the factors of its edges (others explicit zeros)."""
    return [graph.adjacency(np.where(graph.edge_types == r, k, 0.0)) for r in range(graph.n_types)]


def _each(x: np.ndarray, f: Any) -> np.ndarray:
    """f on every matrix of a batch."""
    return np.stack([f(m) for m in x]) if x.ndim == 3 else f(x)


def forward(
    graph: GraphData, x: np.ndarray, weights: Any, edge_weight: Any, concat_own: bool, norm: bool
) -> np.ndarray:
    """The output, blocks side by side."""
    by_type = _by_type(graph, factors(graph, edge_weight, norm))

    def one(m: np.ndarray) -> np.ndarray:
        sums = (
            np.stack([a @ m for a in by_type])
            if by_type
            else np.zeros((0, graph.n_dst, m.shape[1]))
        )
        blocks = sums if weights is None else np.einsum("rb,rid->bid", weights, sums)
        parts = [*blocks, m[: graph.n_dst]] if concat_own else list(blocks)
        return np.concatenate(parts, axis=1) if parts else np.zeros((graph.n_dst, 0))

    return _each(x, one)


def backward(
    graph: GraphData,
    g: np.ndarray,
    x: np.ndarray,
    weights: Any,
    edge_weight: Any,
    concat_own: bool,
    norm: bool,
) -> dict[str, np.ndarray]:
    """All gradients, each by its own formula on dense blocks."""
    dim = x.shape[-1]
    k = factors(graph, edge_weight, norm)
    g3, x3 = (a if a.ndim == 3 else a[None] for a in (g, x))
    n_blocks = graph.n_types if weights is None else weights.shape[1]
    blocks = g3[:, :, : n_blocks * dim].reshape(len(g3), graph.n_dst, n_blocks, dim)
    own = g3[:, :, n_blocks * dim :]
    by_type = blocks if weights is None else np.einsum("rb,nibd->nird", weights, blocks)
    dst, types = graph.destinations, graph.edge_types
    per_edge = by_type[:, dst, types]  # what each edge sends back, before its factor
    dx = np.zeros_like(x3)
    for n in range(len(x3)):
        np.add.at(dx[n], graph.indices, k[:, None] * per_edge[n])
        if concat_own:
            dx[n, : graph.n_dst] += own[n]
    result = {"grad_input": dx.reshape(x.shape)}
    dots = np.einsum("ned,ned->e", x3[:, graph.indices], per_edge)
    result["grad_edge_weight"] = _norms(graph, norm) * dots
    if weights is not None:
        per_base = np.einsum("ned,nebd->eb", x3[:, graph.indices], blocks[:, dst])
        result["grad_weights"] = np.zeros_like(weights)
        np.add.at(result["grad_weights"], types, k[:, None] * per_base)
    return result


def _options() -> Iterator[tuple[bool, bool, bool, bool, bool]]:
    """Weights, edge weights, own row, norm; batched only where all of them meet."""
    for w, e, own, norm in itertools.product((True, False), repeat=4):
        yield w, e, own, norm, False
    yield True, True, True, True, True
    yield False, True, True, False, True


def cases(
    graph: GraphData, rng: np.random.Generator, dim: int = 6, n_bases: int = 3
) -> Iterator[Case]:
    """Both halves under every combination of options."""
    for with_weights, with_edges, own, norm, batched in _options():
        if own and graph.bipartite:
            continue
        lead = (2,) if batched else ()
        x = rng.standard_normal((*lead, graph.n_src, dim))
        weights = rng.standard_normal((graph.n_types, n_bases)) if with_weights else None
        edge_weight = rng.standard_normal(graph.n_edges) if with_edges else None
        width = dim * ((n_bases if with_weights else graph.n_types) + own)
        g = rng.standard_normal((*lead, graph.n_dst, width))
        options = {"concat_own": own, "norm_by_out_degree": norm}
        reads = {"input_embedding": x, "weights_combination": weights, "edge_weight": edge_weight}
        without = () if batched else (BATCH,)
        yield _forward_case(graph, options, reads, without)
        yield _backward_case(graph, options, {**reads, "grad_output": g}, without)


def _forward_case(
    graph: GraphData, options: dict[str, bool], reads: Arrays, without: tuple[str, ...]
) -> Case:
    def oracle(a: Arrays) -> dict[str, Bounded]:
        args = (a["input_embedding"], a["weights_combination"], a["edge_weight"])
        own, norm = options["concat_own"], options["norm_by_out_degree"]
        value = forward(graph, *args, own, norm)
        magnitude = forward(graph, *(None if x is None else np.abs(x) for x in args), own, norm)
        terms = np.diff(graph.offsets)[:, None]
        return {"output_embedding": Bounded(value, terms, magnitude)}

    return Case(AGG_HG_BASIS, "fwd", options, reads, oracle, "csc_hg", without)


def _backward_case(
    graph: GraphData, options: dict[str, bool], reads: Arrays, without: tuple[str, ...]
) -> Case:
    def oracle(a: Arrays) -> dict[str, Bounded]:
        names = ("grad_output", "input_embedding", "weights_combination", "edge_weight")
        args = [a[name] for name in names]
        own, norm = options["concat_own"], options["norm_by_out_degree"]
        value = backward(graph, *args, own, norm)
        size = backward(graph, *(None if x is None else np.abs(x) for x in args), own, norm)
        dim, batch = args[1].shape[-1], args[1].shape[0] if args[1].ndim == 3 else 1
        n_bases = 1 if args[2] is None else args[2].shape[1]
        out_degree = np.bincount(graph.indices, minlength=graph.n_src)[:, None]
        of_type = np.bincount(graph.edge_types, minlength=graph.n_types)[:, None]
        terms = {
            "grad_input": out_degree * n_bases + 1,
            "grad_weights": of_type * dim * batch,
            "grad_edge_weight": dim * batch * n_bases,
        }
        return {name: Bounded(value[name], terms[name], size[name]) for name in value}

    return Case(AGG_HG_BASIS, "bwd", options, reads, oracle, "csc_hg", without)
