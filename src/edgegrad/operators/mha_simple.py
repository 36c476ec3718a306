"""Dot-product attention: declaration and public functions."""

from __future__ import annotations

from typing import Any

from edgegrad import _host
from edgegrad.graph import Graph
from edgegrad.operator import Arg, Operator
from edgegrad.operators import attention, attention_plans

MHA_SIMPLE = Operator(
    name="mha_simple_n2n",
    outputs=(
        Arg("output_embedding", ("n_dst_nodes", "dim_out"), grad="grad_output"),
        attention.ATTENTION,
    ),
    saved=(attention.STATS,),
    inputs=(
        Arg("query", ("n_dst_nodes", "dim_node"), grad="grad_query", grad_dtype="GQ"),
        Arg("key", ("n_src_nodes", "dim_node"), grad="grad_key", grad_dtype="GK"),
        Arg("value", ("n_src_nodes", "dim_value"), grad="grad_value", grad_dtype="GV"),
        attention.edge_features("dim_node"),
        attention.MASK,
        attention.BIAS,
    ),
    graphs=attention.GRAPHS,
    keeps=(
        "query",
        "key",
        "value",
        "edge_embedding",
        "dropout_mask",
        "edge_bias",
        "output_embedding",
    ),
    hints=("output_embedding",),
    derived={"dim_out": attention.node_width("dim_value")},
    scratch=attention.SCRATCH,
    source="Shi et al. 2021, arXiv:2009.03509, eq. 3-4",
)
OPERATORS = (MHA_SIMPLE,)
KERNELS = attention_plans.kernels("mha_simple", "DotScore")
_FAMILY = attention.Family(
    MHA_SIMPLE,
    "mha_simple",
    "DotScore",
    src="key",
    dst="query",
    value="value",
    gradients=("grad_key", "grad_query", "grad_value", ""),
    forward=_host.mha_simple_forward,
    backward=_host.mha_simple_backward,
    separate=True,
)


def mha_simple_n2n_fwd(
    output_embedding: Any,
    softmax_stats: Any,
    query: Any,
    key: Any,
    value: Any,
    graph: Graph,
    num_heads: int,
    concat_heads: bool = True,
    norm_by_dim: bool = True,
    stream_id: int = 0,
    *,
    edge_embedding: Any = None,
    dropout_mask: Any = None,
    dropout_p: float = 0.0,
    dropout_seed: int | None = None,
    edge_bias: Any = None,
    attention: Any = None,
) -> None:
    r"""Sum values of neighbours by attention of query and key (Transformer).

    For an edge e = (j -> i) with edge id c, per head of C columns:

    .. math:: l_e = \langle q_i, k_j + f_c \rangle / \sqrt{C} + b_c, \quad
              \alpha_e = \mathrm{softmax}_{e \to i}(l_e), \quad
              o_i = \sum_e m_e \alpha_e (v_j + f_c)

    Parameters
    ----------
    output_embedding : array (n_dst_nodes, dim_out), T
        Written; heads side by side (``dim_out = dim_value``), or their mean
        (``dim_out = dim_value / num_heads``).
    softmax_stats : array (2, n_dst_nodes, num_heads), A, or None
        Written: the largest logit of each destination and head, and the sum of the exponentials
        beside it (-inf and 0 where there is none). Backward needs it; None in inference.
    query : array (n_dst_nodes, dim_node), T
        Queries of the destinations; dim_node is a multiple of `num_heads`.
    key : array (n_src_nodes, dim_node), T
        Keys of the sources.
    value : array (n_src_nodes, dim_value), T
        Values of the sources; dim_value is a multiple of `num_heads`.
    graph : csc_int32, csc_int64, bipartite_csc_int32 or bipartite_csc_int64
        Edges grouped by destination, on the device of the arrays.
    num_heads : int
        Heads, at least 1.
    concat_heads : bool
        Set heads side by side, rather than average them.
    norm_by_dim : bool
        Divide by the root of C.
    stream_id : int
        CUDA stream handle the work goes on; 0 is the legacy default stream. Nothing synchronises.
    edge_embedding : array (n_indices, dim_node), T, or None
        Features f of the edges, by edge id, added to keys and values: dim_value is then dim_node.
    dropout_mask : array (num_heads, n_indices), float32|A|bool, or None
        By edge id. Floats are the factors m themselves, 0 or 1 / (1 - p); of booleans, True keeps,
        with the factor of `dropout_p`. Not differentiated.
    dropout_p : float
        Probability of dropping a coefficient, 0 to 1; used by a boolean mask and by a seed.
    dropout_seed : int or None
        Drop by random numbers of (seed, edge id, head), the same on every device.
    edge_bias : array (n_indices, num_heads), B, or None
        Added to the logits, by edge id; -inf masks an edge, of which nothing is then used.
    attention : array (num_heads, n_indices), float32|A, or None
        Written, by edge id: the factors of the sum, after softmax and dropout.

    Raises
    ------
    ArgumentError
        If an array, the graph or an option is not as described; `TypeError` for kinds and dtypes,
        `ValueError` for shapes, layouts, devices and values.

    Notes
    -----
    Dtypes: T is float16, bfloat16, float32 or float64; B is T, or float32 beside half types;
    A is float32, or float64 for float64. Everything is computed in A and rounded once. Ids are
    int32 or int64. A destination without in-edges gets 0, so does one whose edges are all masked.
    A NaN or +inf logit makes its destination NaN and no other. Determinism: run-to-run, bitwise,
    for any number of threads. Scratch: one partial output for every 4,096 (host) or 128 (GPU) edges
    of rows longer than that; nothing per edge.
    Source: Shi et al. 2021, arXiv:2009.03509, eq. 3-4.
    """
    dropout = (dropout_mask, dropout_p, dropout_seed)
    options = _options(
        "mha_simple_n2n_fwd", num_heads, concat_heads, "linear", 1.0, dropout, norm_by_dim
    )
    arrays = {
        "output_embedding": output_embedding,
        "softmax_stats": softmax_stats,
        "query": query,
        "key": key,
        "value": value,
        "edge_embedding": edge_embedding,
        "dropout_mask": dropout_mask,
        "edge_bias": edge_bias,
        "attention": attention,
    }
    _forward(_FAMILY, graph, arrays, options, stream_id)


def mha_simple_n2n_bwd(
    grad_query: Any,
    grad_key: Any,
    grad_value: Any,
    grad_output: Any,
    query: Any,
    key: Any,
    value: Any,
    output_embedding: Any,
    softmax_stats: Any,
    graph: Graph,
    num_heads: int,
    concat_heads: bool = True,
    norm_by_dim: bool = True,
    stream_id: int = 0,
    *,
    edge_embedding: Any = None,
    grad_edge: Any = None,
    dropout_mask: Any = None,
    dropout_p: float = 0.0,
    dropout_seed: int | None = None,
    edge_bias: Any = None,
    grad_edge_bias: Any = None,
    grad_attention: Any = None,
    deterministic: bool = True,
) -> None:
    r"""Write the gradients of `mha_simple_n2n_fwd` that are asked for.

    With g the gradient of a head's output and :math:`\gamma` that of its coefficients:

    .. math:: \delta_e = \alpha_e (d_e - \sum_{e' \to i} \alpha_{e'} d_{e'}), \quad
              d_e = m_e (\langle g_i, v_j + f_c \rangle + \gamma_e), \\
              \bar q_i = \sum_e \delta_e (k_j + f_c) / \sqrt{C}, \quad
              \bar k_j = \sum_e \delta_e q_i / \sqrt{C}, \quad
              \bar v_j = \sum_e m_e \alpha_e g_i, \\
              \bar f_c = m_e \alpha_e g_i + \delta_e q_i / \sqrt{C}, \quad \bar b_c = \delta_e

    Parameters
    ----------
    grad_query : array (n_dst_nodes, dim_node), GQ, or None
        Written.
    grad_key : array (n_src_nodes, dim_node), GK, or None
        Written.
    grad_value : array (n_src_nodes, dim_value), GV, or None
        Written.
    grad_output : array (n_dst_nodes, dim_out), T
        Gradient of the output.
    query : array (n_dst_nodes, dim_node), T
        As in forward.
    key : array (n_src_nodes, dim_node), T
        As in forward.
    value : array (n_src_nodes, dim_value), T
        As in forward.
    output_embedding : array (n_dst_nodes, dim_out), T, or None
        What forward wrote. It only sharpens rounding, where features have much in common; without
        it the first neighbour of a destination stands in.
    softmax_stats : array (2, n_dst_nodes, num_heads), A
        What forward wrote.
    graph : csc_int32, csc_int64, bipartite_csc_int32 or bipartite_csc_int64
        The graph of the forward.
    num_heads, concat_heads, norm_by_dim, stream_id
        As in forward.
    edge_embedding : array (n_indices, dim_node), T, or None
        As in forward.
    grad_edge : array (n_indices, dim_node), GE, or None
        Written, by edge id. Needs `edge_embedding`.
    dropout_mask : array (num_heads, n_indices), float32|A|bool, or None
        As in forward.
    dropout_p, dropout_seed
        As in forward.
    edge_bias : array (n_indices, num_heads), B, or None
        As in forward.
    grad_edge_bias : array (n_indices, num_heads), GB, or None
        Written, by edge id; it is defined without an `edge_bias` too.
    grad_attention : array (num_heads, n_indices), float32|A, or None
        Gradient of `attention`, by edge id.
    deterministic : bool
        Accepted for the sake of other libraries' callers: there is no other way than True.

    Raises
    ------
    ArgumentError
        As in forward.

    Notes
    -----
    Dtypes as in forward; GQ, GK, GV, GE and GB, each for itself, are T, or float32 beside half
    types. Determinism as in forward: sources gather over the reverse graph, which is built on first
    need. A destination with one in-edge passes exactly 0 through its coefficient, a masked edge
    passes nothing at all, a dropped one what it takes from the others. Scratch: 6 numbers per
    destination and head; a partial gradient per piece of a long row; nothing per edge.
    Source: Shi et al. 2021, arXiv:2009.03509, eq. 3-4.
    """
    del deterministic
    dropout = (dropout_mask, dropout_p, dropout_seed)
    options = _options(
        "mha_simple_n2n_bwd", num_heads, concat_heads, "linear", 1.0, dropout, norm_by_dim
    )
    arrays = {
        "grad_query": grad_query,
        "grad_key": grad_key,
        "grad_value": grad_value,
        "grad_edge": grad_edge,
        "grad_edge_bias": grad_edge_bias,
        "grad_output": grad_output,
        "grad_attention": grad_attention,
        "query": query,
        "key": key,
        "value": value,
        "edge_embedding": edge_embedding,
        "dropout_mask": dropout_mask,
        "edge_bias": edge_bias,
        "output_embedding": output_embedding,
        "softmax_stats": softmax_stats,
    }
    _backward(_FAMILY, graph, arrays, options, stream_id)


# `attention` is an argument of the functions above.
_options = attention.check_options
_forward, _backward = attention.run_forward, attention.run_backward
