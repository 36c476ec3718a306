"""What a call costs beyond its work: `python scripts/bench/overhead.py`.

Medians of repeated loops, in microseconds: one view of an array of each library, and whole host
operator calls on a graph of ten edges.
"""

from __future__ import annotations

import importlib.util
import timeit
from collections.abc import Callable
from typing import Any

import numpy as np

import edgegrad
from edgegrad import operators
from edgegrad.interop import view


def microseconds(call: Callable[[], object], number: int = 20_000, rounds: int = 9) -> float:
    """Median over rounds of the time of one call."""
    call()
    return float(np.median(timeit.repeat(call, number=number, repeat=rounds))) / number * 1e6


def _through_torch(graph: Any, x: np.ndarray) -> list[tuple[str, float]]:
    """The same small operator by its explicit function and by `edgegrad.torch`."""
    import torch

    import edgegrad.torch as et

    out, grad, ones = np.empty_like(x), np.empty_like(x), np.ones_like(x)
    tensor = torch.tensor(x)
    leaf = tensor.clone().requires_grad_()
    y, g = et.agg_simple_n2n(leaf, graph), torch.tensor(ones)
    forward, backward = operators.agg_simple_n2n_fwd, operators.agg_simple_n2n_bwd
    calls: list[tuple[str, Callable[[], object]]] = [
        ("agg_simple forward", lambda: forward(out, x, graph)),
        (" ... torch, no gradient", lambda: et.agg_simple_n2n(tensor, graph)),
        (" ... torch, gradient", lambda: et.agg_simple_n2n(leaf, graph)),
        ("agg_simple backward", lambda: backward(grad, ones, graph)),
        (" ... torch", lambda: torch.autograd.grad(y, leaf, g, retain_graph=True)),
    ]
    return [(name, microseconds(call)) for name, call in calls]


def _through_jax(graph: Any, x: np.ndarray) -> list[tuple[str, float]]:
    """The same by `edgegrad.jax` in compiled functions, beside one that does next to nothing."""
    import jax

    import edgegrad.jax as ej

    a = jax.numpy.asarray(x)
    calls = {
        " ... JAX, compiled": jax.jit(lambda x: ej.agg_simple_n2n(x, graph)),
        "a compiled JAX product": jax.jit(lambda x: 2 * x),
    }
    return [
        (name, microseconds(lambda f=f: f(a).block_until_ready(), 2000))
        for name, f in calls.items()
    ]


def main() -> None:
    rows = []
    array = np.zeros((4, 8), np.float32)
    rows.append(("view: NumPy", microseconds(lambda: view("bench", "x", array))))
    if importlib.util.find_spec("torch"):
        import torch

        tensor = torch.zeros(4, 8)
        rows.append(("view: PyTorch", microseconds(lambda: view("bench", "x", tensor))))
    if importlib.util.find_spec("jax"):
        import jax.numpy as jnp

        j = jnp.zeros((4, 8))
        rows.append(("view: JAX", microseconds(lambda: view("bench", "x", j))))

    rng = np.random.default_rng(0)
    src, dst = rng.integers(0, 5, (2, 10)).astype(np.int32)
    types = rng.integers(0, 3, 10).astype(np.int32)
    graph = edgegrad.from_coo(src, dst, 5, edge_types=types, n_edge_types=3)
    x = rng.standard_normal((5, 8)).astype(np.float32)
    weights = rng.standard_normal((3, 2)).astype(np.float32)
    y, dx, dw = np.empty((5, 16), np.float32), np.empty_like(x), np.empty_like(weights)
    forward = operators.agg_hg_basis_n2n_post_fwd
    backward = operators.agg_hg_basis_n2n_post_bwd
    rows += [
        ("agg_hg_basis forward", microseconds(lambda: forward(y, x, weights, graph))),
        ("agg_hg_basis backward", microseconds(lambda: backward(dx, dw, y, x, weights, graph))),
    ]
    if importlib.util.find_spec("torch"):
        rows += _through_torch(graph, x)
    if importlib.util.find_spec("jax"):
        rows += _through_jax(graph, x)
    for name, time in rows:
        print(f"{name:<24} {time:6.2f} us")


if __name__ == "__main__":
    main()
