"""Calls of the functions of `edgegrad.torch`, made from the registrations: every option class."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

import devices
import edgegrad.torch as et
import graphs
from edgegrad.differentiation import DIFFERENTIABLE, Derivatives
from edgegrad.operator import ABSENT

HEADS = 2
_WIDTHS = {"dim": 4, "dim_in": 3, "dim_node": 4, "dim_edge": 4, "dim_src": 2, "dim_dst": 3}
_WIDTHS |= {"dim_value": 4, "n_bases": 2, "n_nodes": 7, "[heads]": HEADS, "num_heads": HEADS}
_ATTENTION = {"num_heads": HEADS}

# Option classes by operator; the others have those of `_ALL`, or none.
_OPTIONS: dict[str, list[dict[str, Any]]] = {
    "agg_hg_basis_n2n_post": [{}, {"concat_own": True, "norm_by_out_degree": True}],
    "agg_dmpnn_e2e": [{}, {"concat_own": True}],
    "spmm": [
        {"reduce": r, "transpose": t}
        for r, t in itertools.product(("sum", "mean", "max"), (False, True))
    ],
    "sddmm": [{"op": op} for op in ("dot", "add", "sub", "mul", "div", "copy_lhs", "copy_rhs")],
    "edge_softmax": [{}, {"scope": "dst_and_type"}],
    "mha_gat_n2n": [
        {**_ATTENTION, "activation": a} for a in ("leaky_relu", "sigmoid", "tanh", "elu", "scalar")
    ]
    + [{**_ATTENTION, "concat_heads": False, "activation": "linear"}],
    "mha_gat_v2_n2n": [_ATTENTION, {**_ATTENTION, "activation": "tanh", "concat_heads": False}],
    "mha_simple_n2n": [_ATTENTION, {**_ATTENTION, "norm_by_dim": False, "concat_heads": False}],
}
_ALL = ("sum", "mean", "min", "max", "var", "std")


@dataclass(frozen=True)
class Case:
    """A function, its options, and which of the inputs that may be left out are."""

    d: Derivatives
    options: dict[str, Any] = field(default_factory=dict)
    without: tuple[str, ...] = ()
    heads: bool = True

    def __str__(self) -> str:
        chosen = [f"{k}={v}" for k, v in self.options.items() if k != "num_heads"]
        left_out = [f"no {name}" for name in self.without]
        return "-".join([self.d.name, *chosen, *left_out, *([] if self.heads else ["one head"])])

    @property
    def full(self) -> dict[str, Any]:
        """All options, normalised."""
        return {**self.d.defaults, **self.d.normalised(self.options)}

    @property
    def has_second(self) -> bool:
        return bool(self.d.terms(self.full) or self.d.rule(self.full))

    @property
    def names(self) -> list[str]:
        """Names of the inputs that have a gradient and are given."""
        return [a.name for a in self.d.variables if a.name not in self.without]

    def shapes(self, graph: Any) -> dict[str, tuple[int, ...]]:
        counts = dict(graph.sizes) if self.d.op.graphs else {}
        known = {**_WIDTHS, **counts, **self.d.sizes(counts, self.full), "[batch]": ABSENT}
        known["dim_weights"] = 2 * known["dim_node"]
        known["dim_weights"] += 0 if "edge_embedding" in self.without else known["dim_edge"]
        known["n_offsets"] = 4
        if not self.heads:
            known["[heads]"] = ABSENT
        return {
            a.name: tuple(known[x] for x in a.axes if known[x] != ABSENT)
            for a in self.d.op.inputs
            if a.name not in self.without
        }

    def inputs(self, graph: Any, dtype: Any = torch.float64, seed: int = 0) -> dict[str, Any]:
        """Values for all inputs; distinct ones, so that no minimum is a tie."""
        rng = np.random.default_rng(seed)
        made = {}
        for name, shape in self.shapes(graph).items():
            if name == "node_offsets":
                made[name] = torch.tensor([0, 3, 3, 7])
            elif name == "rev_edge_ids":
                made[name] = torch.tensor(rng.permutation(shape[0]) - 1)
            elif name == "dropout_mask":
                made[name] = torch.tensor((rng.random(shape) > 0.3) / 0.7, dtype=dtype)
            else:
                values = rng.standard_normal(shape)
                away = self.d.name == "sddmm" and self.options.get("op") == "div"
                made[name] = torch.tensor(values + 3 * np.sign(values) * away, dtype=dtype)
        return made

    def function(self, graph: Any, fixed: dict[str, Any]) -> Callable[..., Any]:
        """The function of the inputs that have a gradient, the others fixed."""
        run, given = getattr(et, self.d.name), {"graph": graph} if self.d.op.graphs else {}
        missing = dict.fromkeys(self.without)
        others = {k: a for k, a in fixed.items() if k not in self.names}

        def call(*arrays: Any) -> Any:
            named = dict(zip(self.names, arrays, strict=True))
            return run(**missing, **others, **named, **given, **self.options)

        return call


def cases() -> Iterator[Case]:
    """Every registered operator with every class of its options."""
    for d in DIFFERENTIABLE:
        options = _OPTIONS.get(d.name, [{}])
        if "aggregation_operation" in d.options:
            basic = "weighted" in d.name
            options = [{"aggregation_operation": op} for op in (_ALL[:4] if basic else _ALL)]
        for chosen in options:
            yield Case(d, chosen, _left_out(d, chosen))
        optional = tuple(a.name for a in d.op.inputs if a.optional and _free(d, a.name))
        if optional:
            yield Case(d, options[0], optional)
        if any("[heads]" in a.axes for a in d.op.inputs):
            yield Case(d, options[0], heads=False)


def _free(d: Derivatives, name: str) -> bool:
    """Whether an input may be left out whatever the others are."""
    return d.name != "sddmm" and name != "input_src_node_embedding"


def _left_out(d: Derivatives, options: dict[str, Any]) -> tuple[str, ...]:
    """Inputs that an option has no use for."""
    op = options.get("op", "")
    return {"copy_lhs": ("rhs",), "copy_rhs": ("lhs",)}.get(op, ())


CASES = tuple(cases())
SECOND = tuple(case for case in CASES if case.has_second)
FIRST_ONLY = tuple(case for case in CASES if not case.has_second)


def make_graph(case: Case, bipartite: bool = False) -> Any:
    """A small graph with a map of edge ids, parallel edges and an idle destination."""
    rng = np.random.default_rng(3)
    src, dst = rng.integers(0, 5, 9), rng.choice([0, 1, 3], 9)
    data = graphs.from_edges(src, dst, 5, 4, n_types=2, bipartite=bipartite)
    kind = "csc_hg" if "csc_hg" in case.d.op.graphs else "csc"
    return data.make(devices.Host(), np.int64, kind)
