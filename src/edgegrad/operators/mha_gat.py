"""GAT: declaration and public functions."""

from __future__ import annotations

from typing import Any

from edgegrad import _host
from edgegrad.graph import Graph
from edgegrad.operator import Arg, Operator
from edgegrad.operators import attention, attention_plans

MHA_GAT = Operator(
    name="mha_gat_n2n",
    outputs=(
        Arg("output_embedding", ("n_dst_nodes", "dim_out"), grad="grad_output"),
        attention.ATTENTION,
    ),
    saved=(attention.STATS,),
    inputs=(
        Arg("src_embedding", ("n_src_nodes", "dim_node"), grad="grad_src", grad_dtype="GS"),
        Arg(
            "dst_embedding",
            ("n_dst_nodes", "dim_node"),
            grad="grad_dst",
            grad_dtype="GD",
            optional=True,
        ),
        Arg("attn_weights", ("dim_weights",), dtype="W", grad="grad_attn_weights", grad_dtype="GW"),
        attention.edge_features("dim_edge"),
        attention.MASK,
        attention.BIAS,
    ),
    graphs=attention.GRAPHS,
    keeps=(
        "src_embedding",
        "dst_embedding",
        "attn_weights",
        "edge_embedding",
        "dropout_mask",
        "edge_bias",
        "output_embedding",
    ),
    hints=("output_embedding",),
    derived={
        "dim_out": attention.node_width("dim_node"),
        "dim_weights": lambda s: 2 * s["dim_node"] + s.get("dim_edge", 0),
    },
    scratch=attention.SCRATCH,
    source="Velickovic et al. 2018, arXiv:1710.10903, eq. 1-6",
)
OPERATORS = (MHA_GAT,)
KERNELS = (*attention_plans.SHARED_KERNELS, *attention_plans.kernels("mha_gat", "GatScore"))
_FAMILY = attention.Family(
    MHA_GAT,
    "mha_gat",
    "GatScore",
    src="src_embedding",
    dst="dst_embedding",
    value="src_embedding",
    gradients=("grad_src", "grad_dst", "", "grad_attn_weights"),
    forward=_host.mha_gat_forward,
    backward=_host.mha_gat_backward,
    per_head=True,
)


def mha_gat_n2n_fwd(
    output_embedding: Any,
    softmax_stats: Any,
    src_embedding: Any,
    dst_embedding: Any,
    attn_weights: Any,
    graph: Graph,
    num_heads: int,
    activation: str = "leaky_relu",
    activation_alpha: float = 0.2,
    concat_heads: bool = True,
    stream_id: int = 0,
    *,
    edge_embedding: Any = None,
    dropout_mask: Any = None,
    dropout_p: float = 0.0,
    dropout_seed: int | None = None,
    edge_bias: Any = None,
    attention: Any = None,
) -> None:
    r"""Sum neighbours by attention of a linear score of both ends of an edge (GAT).

    For an edge e = (j -> i) with edge id c, per head, weights w = [w_s | w_d | w_e]:

    .. math:: l_e = \mathrm{act}(\langle w_s, x_j \rangle + \langle w_d, y_i \rangle
              + \langle w_e, f_c \rangle) + b_c, \quad
              \alpha_e = \mathrm{softmax}_{e \to i}(l_e), \quad
              o_i = \sum_e m_e \alpha_e x_j

    Parameters
    ----------
    output_embedding : array (n_dst_nodes, dim_out), T
        Written; heads side by side (``dim_out = dim_node``), or their mean
        (``dim_out = dim_node / num_heads``).
    softmax_stats : array (2, n_dst_nodes, num_heads), A, or None
        Written: the largest logit of each destination and head, and the sum of the exponentials
        beside it (-inf and 0 where there is none). Backward needs it; None in inference.
    src_embedding : array (n_src_nodes, dim_node), T
        Features x of the sources; dim_node is a multiple of `num_heads`.
    dst_embedding : array (n_dst_nodes, dim_node), T, or None
        Features y of the destinations. None: destinations are the first source rows, which a
        bipartite graph does not have.
    attn_weights : array (dim_weights), W
        Source, destination and edge part one after the other, head by head in each:
        ``dim_weights = 2 * dim_node + dim_edge``.
    graph : csc_int32, csc_int64, bipartite_csc_int32 or bipartite_csc_int64
        Edges grouped by destination, on the device of the arrays.
    num_heads : int
        Heads, at least 1.
    activation : str
        "linear", "relu", "sigmoid", "tanh", "elu", "scalar" or "leaky_relu".
    activation_alpha : float
        Slope of leaky_relu below 0, factor of scalar; any value.
    concat_heads : bool
        Set heads side by side, rather than average them.
    stream_id : int
        CUDA stream handle the work goes on; 0 is the legacy default stream. Nothing synchronises.
    edge_embedding : array (n_indices, dim_edge), T, or None
        Features f of the edges, by edge id; dim_edge is a multiple of `num_heads`.
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
    Dtypes: T is float16, bfloat16, float32 or float64; W and B are T, or float32 beside half types;
    A is float32, or float64 for float64. Everything is computed in A and rounded once. Ids are
    int32 or int64. A destination without in-edges gets 0, so does one whose edges are all masked.
    A NaN or +inf logit makes its destination NaN and no other. Determinism: run-to-run, bitwise,
    for any number of threads. Scratch: one partial output for every 4,096 (host) or 128 (GPU) edges
    of rows longer than that; on a GPU num_heads numbers per node; nothing per edge.
    Source: Velickovic et al. 2018, arXiv:1710.10903, eq. 1-6.
    """
    options = _options(
        "mha_gat_n2n_fwd", num_heads, concat_heads, activation, activation_alpha,
        (dropout_mask, dropout_p, dropout_seed),
    )  # fmt: skip
    arrays = {
        "output_embedding": output_embedding,
        "softmax_stats": softmax_stats,
        "src_embedding": src_embedding,
        "dst_embedding": dst_embedding,
        "attn_weights": attn_weights,
        "edge_embedding": edge_embedding,
        "dropout_mask": dropout_mask,
        "edge_bias": edge_bias,
        "attention": attention,
    }
    _forward(_FAMILY, graph, arrays, options, stream_id)


def mha_gat_n2n_bwd(
    grad_src: Any,
    grad_dst: Any,
    grad_attn_weights: Any,
    grad_output: Any,
    src_embedding: Any,
    dst_embedding: Any,
    attn_weights: Any,
    output_embedding: Any,
    softmax_stats: Any,
    graph: Graph,
    num_heads: int,
    activation: str = "leaky_relu",
    activation_alpha: float = 0.2,
    concat_heads: bool = True,
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
    r"""Write the gradients of `mha_gat_n2n_fwd` that are asked for.

    With g the gradient of a head's output and :math:`\gamma` that of its coefficients, z what the
    activation is given:

    .. math:: \delta_e = \alpha_e (d_e - \sum_{e' \to i} \alpha_{e'} d_{e'}), \quad
              d_e = m_e (\langle g_i, x_j \rangle + \gamma_e), \quad
              \dot z_e = \delta_e \, \mathrm{act}'(z_e), \\
              \bar x_j = \sum_e (m_e \alpha_e g_i + \dot z_e w_s), \quad
              \bar y_i = \sum_e \dot z_e w_d, \quad \bar f_c = \dot z_e w_e, \quad
              \bar b_c = \delta_e, \\
              \bar w = \sum_e \dot z_e [x_j | y_i | f_c]

    Parameters
    ----------
    grad_src : array (n_src_nodes, dim_node), GS, or None
        Written. Without `dst_embedding` it has the gradient of the destinations too.
    grad_dst : array (n_dst_nodes, dim_node), GD, or None
        Written. Needs `dst_embedding`.
    grad_attn_weights : array (dim_weights), GW, or None
        Written, in the order of `attn_weights`.
    grad_output : array (n_dst_nodes, dim_out), T
        Gradient of the output.
    src_embedding : array (n_src_nodes, dim_node), T
        As in forward.
    dst_embedding : array (n_dst_nodes, dim_node), T, or None
        As in forward.
    attn_weights : array (dim_weights), W
        As in forward.
    output_embedding : array (n_dst_nodes, dim_out), T, or None
        What forward wrote. It only sharpens rounding, where features have much in common; without
        it the first neighbour of a destination stands in.
    softmax_stats : array (2, n_dst_nodes, num_heads), A
        What forward wrote.
    graph : csc_int32, csc_int64, bipartite_csc_int32 or bipartite_csc_int64
        The graph of the forward.
    num_heads, activation, activation_alpha, concat_heads, stream_id
        As in forward.
    edge_embedding : array (n_indices, dim_edge), T, or None
        As in forward.
    grad_edge : array (n_indices, dim_edge), GE, or None
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
    Dtypes as in forward; GS, GD, GW, GE and GB, each for itself, are T, or float32 beside half
    types. Determinism as in forward: sources gather over the reverse graph, which is built on first
    need, weight gradients are added up in two stages of fixed order. A destination with one in-edge
    passes exactly 0 through its coefficient, a masked edge passes nothing at all, a dropped one
    what it takes from the others. Scratch: 6 numbers per destination and head; one row of weight
    gradients per 1/256 of the edges; a partial gradient per piece of a long row; nothing per
    edge.
    Source: Velickovic et al. 2018, arXiv:1710.10903, eq. 1-6.
    """
    del deterministic
    options = _options(
        "mha_gat_n2n_bwd", num_heads, concat_heads, activation, activation_alpha,
        (dropout_mask, dropout_p, dropout_seed),
    )  # fmt: skip
    arrays = {
        "grad_src": grad_src,
        "grad_dst": grad_dst,
        "grad_attn_weights": grad_attn_weights,
        "grad_edge": grad_edge,
        "grad_edge_bias": grad_edge_bias,
        "grad_output": grad_output,
        "grad_attention": grad_attention,
        "src_embedding": src_embedding,
        "dst_embedding": dst_embedding,
        "attn_weights": attn_weights,
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
