"""`pylibcugraphops.pytorch` by its published names, over `edgegrad.torch`.

Edge weights are in CSC order here, as that library has them; edge features are by edge id.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from edgegrad.differentiation import DIFFERENTIABLE, Derivatives, derivatives
from edgegrad.errors import wrong_option
from edgegrad.graph import (
    Graph,
    make_bipartite_csc,
    make_bipartite_csc_hg,
    make_csc,
    make_csc_hg,
)
from edgegrad.torch.functions import call, function_of

# Names of activations as that library has them.
_ACTIVATIONS = {"leakyrelu": "leaky_relu"}


def CSC(  # noqa: N802
    offsets: Tensor,
    indices: Tensor,
    num_src_nodes: int,
    dst_max_in_degree: int | None = None,
    src_max_out_degree: int | None = None,
    min_in_degree: int | None = None,
    map_csc_to_coo: Tensor | None = None,
) -> Graph:
    """Make a graph of compressed columns; its destinations are the first sources if they can be.

    Parameters
    ----------
    offsets : Tensor (n_dst_nodes + 1), int32 or int64
        Where each destination's edges begin, closed by the number of edges.
    indices : Tensor (n_indices), int32 or int64
        Source of each edge.
    num_src_nodes : int
        Number of sources.
    dst_max_in_degree, src_max_out_degree, min_in_degree : int or None
        Accepted: nothing here depends on them.
    map_csc_to_coo : Tensor (n_indices), or None
        Edge id of each edge; None: the position.
    """
    del dst_max_in_degree, src_max_out_degree, min_in_degree
    if num_src_nodes < len(offsets) - 1:
        return make_bipartite_csc(offsets, indices, num_src_nodes, map_csc_to_coo)
    return make_csc(offsets, indices, map_csc_to_coo, n_src_nodes=num_src_nodes)


def HeteroCSC(  # noqa: N802
    offsets: Tensor,
    indices: Tensor,
    edge_types: Tensor,
    num_src_nodes: int,
    num_edge_types: int,
    dst_max_in_degree: int | None = None,
    src_max_out_degree: int | None = None,
    min_in_degree: int | None = None,
    map_csc_to_coo: Tensor | None = None,
) -> Graph:
    """Make a graph with edge types; parameters are those of `CSC`, and

    Parameters
    ----------
    edge_types : Tensor (n_indices), int32
        Type of each edge, in the order of `indices`.
    num_edge_types : int
        Number of types.
    """
    del dst_max_in_degree, src_max_out_degree, min_in_degree
    if num_src_nodes < len(offsets) - 1:
        return make_bipartite_csc_hg(
            offsets, indices, num_src_nodes, 0, num_edge_types, None, None, edge_types,
            map_csc_to_coo,
        )  # fmt: skip
    return make_csc_hg(
        offsets, indices, 0, num_edge_types, None, edge_types, map_csc_to_coo,
        n_src_nodes=num_src_nodes,
    )  # fmt: skip


def _attention(name: str) -> Callable[..., Tensor]:
    d = derivatives(name)

    def attend(
        feat: Tensor | tuple[Tensor, Tensor],
        attn_weights: Tensor,
        graph: Graph,
        num_heads: int = 1,
        activation: str = "LeakyReLU",
        negative_slope: float = 0.2,
        concat_heads: bool = True,
        edge_feat: Tensor | None = None,
    ) -> Tensor:
        src, dst = feat if isinstance(feat, tuple) else (feat, None)
        if not isinstance(activation, str):
            raise wrong_option(name, "activation", activation, "a name")
        lower = activation.lower()
        options = d.normalised(
            {
                "num_heads": num_heads,
                "activation": _ACTIVATIONS.get(lower, lower),
                "activation_alpha": negative_slope,
                "concat_heads": concat_heads,
            }
        )
        given = {"src_embedding": src, "dst_embedding": dst, "attn_weights": attn_weights}
        given["edge_embedding"] = edge_feat
        inputs = [given.get(a.name) for a in d.op.inputs]
        values = {**d.defaults, **options}
        return call(d, graph, inputs, tuple(values[k] for k in d.options))[0]

    attend.__name__ = attend.__qualname__ = name
    attend.__doc__ = f"Attend as `edgegrad.operators.{name}_fwd` does, under autograd."
    return attend


def _mha_simple_n2n(
    key_emb: Tensor,
    query_emb: Tensor,
    value_emb: Tensor,
    graph: Graph,
    num_heads: int = 1,
    concat_heads: bool = True,
    edge_emb: Tensor | None = None,
    norm_by_dim: bool = True,
    score_bias: Tensor | None = None,
) -> Tensor:
    """Attend by dot products, as `edgegrad.operators.mha_simple_n2n_fwd` does, under autograd."""
    d = derivatives("mha_simple_n2n")
    options = d.normalised(
        {"num_heads": num_heads, "concat_heads": concat_heads, "norm_by_dim": norm_by_dim}
    )
    given = {"query": query_emb, "key": key_emb, "value": value_emb}
    given |= {"edge_embedding": edge_emb, "edge_bias": score_bias}
    inputs = [given.get(a.name) for a in d.op.inputs]
    values = {**d.defaults, **options}
    return call(d, graph, inputs, tuple(values[k] for k in d.options))[0]


def _plain(d: Derivatives) -> Callable[..., Tensor]:
    return function_of(d, by_id=False)


OPERATORS: dict[str, Callable[..., Tensor]] = {
    **{d.name: _plain(d) for d in DIFFERENTIABLE if not d.name.startswith("mha_")},
    "mha_gat_n2n": _attention("mha_gat_n2n"),
    "mha_gat_v2_n2n": _attention("mha_gat_v2_n2n"),
    "mha_simple_n2n": _mha_simple_n2n,
}
