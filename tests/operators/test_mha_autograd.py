"""Attention and its gradients against torch's autograd, in float64, over all options."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import edgegrad.operators as ops
import graphs
from reference.attention import ACTIVATIONS, edge_ids

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

WIDTH, EDGE_WIDTH = 2, 3


def _activate(name: str, z: Any, alpha: float) -> Any:
    functions = {
        "linear": lambda: z,
        "relu": lambda: torch.relu(z),
        "sigmoid": lambda: torch.sigmoid(z),
        "tanh": lambda: torch.tanh(z),
        "elu": lambda: torch.nn.functional.elu(z),
        "scalar": lambda: alpha * z,
        "leaky_relu": lambda: torch.nn.functional.leaky_relu(z, alpha),
    }
    return functions[name]()


def _attend(logits: Any, values: Any, mask: Any, dst: Any, n_dst: int, concat: bool) -> Any:
    """Output and coefficients (edges, heads), by scatter and gather."""
    heads = logits.shape[1]
    index = dst[:, None].expand_as(logits)
    top = torch.full((n_dst, heads), -torch.inf, dtype=logits.dtype)
    top = top.scatter_reduce(0, index, logits.detach(), "amax")
    e = torch.exp(logits - top[dst])
    total = torch.zeros((n_dst, heads), dtype=e.dtype).index_add(0, dst, e)
    a = e / total[dst] * mask
    out = torch.zeros((n_dst, *values.shape[1:]), dtype=e.dtype)
    out = out.index_add(0, dst, a[..., None] * values)
    return (out.flatten(1) if concat else out.mean(1)), a


class Problem:
    """One operator on one graph: arrays, and what torch makes of them."""

    def __init__(self, graph: graphs.GraphData, kind: str, heads: int, **chosen: Any) -> None:
        self.graph, self.kind, self.heads, self.chosen = graph, kind, heads, chosen
        rng = np.random.default_rng(3)
        dim = heads * WIDTH
        edge_dim = heads * EDGE_WIDTH if kind == "mha_gat" else dim
        with_edges = chosen.get("edges", False)
        names = {
            "mha_gat": ("src_embedding", "dst_embedding", "attn_weights"),
            "mha_gat_v2": ("src_embedding", "dst_embedding", "attn_weights"),
            "mha_simple": ("key", "query", "value"),
        }[kind]
        weights = 2 * dim + edge_dim * with_edges if kind == "mha_gat" else dim
        third = (graph.n_src, dim) if kind == "mha_simple" else (weights,)
        shapes = dict(zip(names, ((graph.n_src, dim), (graph.n_dst, dim), third), strict=True))
        own = kind != "mha_simple" and not graph.bipartite
        self.inputs = {k: rng.standard_normal(s) for k, s in shapes.items()}
        if own:
            self.inputs["dst_embedding"] = None
        self.inputs["edge_embedding"] = (
            rng.standard_normal((graph.n_edges, edge_dim)) if with_edges else None
        )
        self.inputs["edge_bias"] = rng.standard_normal((graph.n_edges, heads))
        self.mask = (rng.random((heads, graph.n_edges)) < 0.6) / 0.6 if chosen.get("mask") else None
        out_dim = dim if chosen.get("concat_heads", True) else WIDTH
        self.g = rng.standard_normal((graph.n_dst, out_dim))
        self.gamma = rng.standard_normal((heads, graph.n_edges)) if chosen.get("gamma") else None

    def autograd(self) -> tuple[Any, Any, dict[str, np.ndarray]]:
        """Output, coefficients by edge id, gradients by the name of the input."""
        t = {
            k: torch.tensor(v, requires_grad=True) for k, v in self.inputs.items() if v is not None
        }
        ids = torch.tensor(edge_ids(self.graph))
        src, dst = torch.tensor(self.graph.indices), torch.tensor(self.graph.destinations)
        logits, values = self._scores(t, src, dst, ids)
        logits = logits + t["edge_bias"][ids]
        mask = torch.ones_like(logits)
        if self.mask is not None:
            mask = torch.tensor(self.mask.T)[ids]
        concat = self.chosen.get("concat_heads", True)
        out, a = _attend(logits, values, mask, dst, self.graph.n_dst, concat)
        by_id = torch.zeros_like(a).index_copy(0, ids, a).T
        loss = (out * torch.tensor(self.g)).sum()
        if self.gamma is not None:
            loss = loss + (by_id * torch.tensor(self.gamma)).sum()
        found = torch.autograd.grad(loss, list(t.values()), allow_unused=True)
        gradients = {
            k: np.zeros(x.shape) if d is None else d.numpy()
            for (k, x), d in zip(t.items(), found, strict=True)
        }
        return out.detach().numpy(), by_id.detach().numpy(), gradients

    def _scores(self, t: dict[str, Any], src: Any, dst: Any, ids: Any) -> tuple[Any, Any]:
        name = self.chosen.get("activation", "leaky_relu")
        alpha = self.chosen.get("activation_alpha", 0.2)

        def headed(x: Any) -> Any:
            return x.reshape(len(x), self.heads, -1)

        edge = headed(t["edge_embedding"])[ids] if "edge_embedding" in t else None
        if self.kind == "mha_simple":
            key, value = headed(t["key"])[src], headed(t["value"])[src]
            if edge is not None:
                key, value = key + edge, value + edge
            return (headed(t["query"])[dst] * key).sum(-1) / WIDTH**0.5, value
        x = headed(t["src_embedding"])
        y = headed(t.get("dst_embedding", t["src_embedding"]))
        w, dim = t["attn_weights"], self.heads * WIDTH
        if self.kind == "mha_gat_v2":
            z = x[src] + y[dst] + (0 if edge is None else edge)
            return (_activate(name, z, alpha) * w.reshape(self.heads, -1)).sum(-1), x[src]
        parts = w.split([dim, dim, len(w) - 2 * dim])
        z = (x[src] * parts[0].reshape(self.heads, -1)).sum(-1)
        z = z + (y[dst] * parts[1].reshape(self.heads, -1)).sum(-1)
        if edge is not None:
            z = z + (edge * parts[2].reshape(self.heads, -1)).sum(-1)
        return _activate(name, z, alpha), x[src]

    def run(self, device: Any) -> tuple[Any, Any, dict[str, np.ndarray]]:
        """The same by the operators."""
        op = next(o for o in ops.OPERATORS if o.name == f"{self.kind}_n2n")
        struct = self.graph.make(device, kind="csc")
        given = {k: None if v is None else device.array(v) for k, v in self.inputs.items()}
        given["dropout_mask"] = None if self.mask is None else device.array(self.mask)
        names = ("concat_heads", "activation", "activation_alpha")
        options = {k: self.chosen[k] for k in names if k in self.chosen}
        if self.kind == "mha_simple":
            options = {k: v for k, v in options.items() if k == "concat_heads"}
        out = device.poisoned(self.g.shape, np.float64)
        stats = device.poisoned((2, self.graph.n_dst, self.heads), np.float64)
        a = device.poisoned((self.heads, self.graph.n_edges), np.float64)
        forward, backward = (getattr(ops, f"{op.name}_{half}") for half in ("fwd", "bwd"))
        forward(out, stats, graph=struct, num_heads=self.heads, attention=a, **given, **options)
        gradients = {
            x.name: (x.grad, device.poisoned(self.inputs[x.name].shape, np.float64))
            for x in op.inputs
            if x.grad and self.inputs[x.name] is not None
        }
        wanted = {x.grad: None for x in op.inputs if x.grad} | dict(gradients.values())
        backward(
            **wanted,
            grad_output=device.array(self.g),
            output_embedding=out,
            softmax_stats=stats,
            graph=struct,
            num_heads=self.heads,
            grad_attention=None if self.gamma is None else device.array(self.gamma),
            **given,
            **options,
        )
        to_numpy = device.numpy
        return to_numpy(out), to_numpy(a), {k: to_numpy(d) for k, (_, d) in gradients.items()}


def _assert_agrees(problem: Problem, device: Any) -> None:
    for got, expected in zip(problem.run(device), problem.autograd(), strict=True):
        if isinstance(expected, dict):
            assert got.keys() == expected.keys()
            for name in expected:
                np.testing.assert_allclose(got[name], expected[name], 1e-10, 1e-10, err_msg=name)
        else:
            np.testing.assert_allclose(got, expected, 1e-10, 1e-10)


def _matrix(kind: str) -> Any:
    activations = [None] if kind == "mha_simple" else ACTIVATIONS
    flags = itertools.product((False, True), repeat=4)
    for activation, heads, (concat, mask, edges, gamma) in itertools.product(
        activations, (1, 3), flags
    ):
        chosen = {"concat_heads": concat, "mask": mask, "edges": edges, "gamma": gamma}
        yield heads, chosen if activation is None else {**chosen, "activation": activation}


KINDS = pytest.mark.parametrize("kind", ["mha_gat", "mha_gat_v2", "mha_simple"])


@KINDS
@pytest.mark.parametrize("name", ["multi_edge", "bipartite"])
def test_every_combination_on_the_host(kind: str, name: str) -> None:
    from devices import Host

    graph = graphs.make(name)
    for heads, chosen in _matrix(kind):
        _assert_agrees(Problem(graph, kind, heads, **chosen), Host())


@KINDS
@pytest.mark.parametrize("name", ["more_sources", "bipartite"])
def test_some_combinations(device: Any, kind: str, name: str) -> None:
    graph = graphs.make(name)
    for heads, chosen in list(_matrix(kind))[5::29]:
        _assert_agrees(Problem(graph, kind, heads, activation_alpha=-0.3, **chosen), device)
