"""Operators: pairs of plain functions that write their outputs and the gradients asked for."""

from edgegrad.backends import rows
from edgegrad.graph import make
from edgegrad.operators import (
    agg_concat,
    agg_dmpnn,
    agg_hg_basis,
    agg_simple,
    agg_weighted,
    edge_softmax,
    edge_update,
    gather_reduce_plans,
    history,
    mha_gat,
    mha_gat_v2,
    mha_simple,
    per_edge_plans,
    pool,
    sddmm,
    spmm,
)
from edgegrad.operators.agg_concat import (
    agg_concat_e2n_bwd,
    agg_concat_e2n_fwd,
    agg_concat_n2n_bwd,
    agg_concat_n2n_e2n_bwd,
    agg_concat_n2n_e2n_fwd,
    agg_concat_n2n_fwd,
)
from edgegrad.operators.agg_dmpnn import agg_dmpnn_e2e_bwd, agg_dmpnn_e2e_fwd
from edgegrad.operators.agg_hg_basis import agg_hg_basis_n2n_post_bwd, agg_hg_basis_n2n_post_fwd
from edgegrad.operators.agg_op import AggOp
from edgegrad.operators.agg_simple import (
    agg_simple_e2n_bwd,
    agg_simple_e2n_fwd,
    agg_simple_n2n_bwd,
    agg_simple_n2n_e2n_bwd,
    agg_simple_n2n_e2n_fwd,
    agg_simple_n2n_fwd,
)
from edgegrad.operators.agg_weighted import (
    agg_concat_weighted_n2n_bwd,
    agg_concat_weighted_n2n_fwd,
    agg_weighted_n2n_bwd,
    agg_weighted_n2n_fwd,
)
from edgegrad.operators.edge_softmax import edge_softmax_bwd, edge_softmax_fwd
from edgegrad.operators.edge_update import (
    update_efeat_e2e_concat_bwd,
    update_efeat_e2e_concat_fwd,
    update_efeat_e2e_sum_bwd,
    update_efeat_e2e_sum_fwd,
)
from edgegrad.operators.history import (
    history_accumulate_grad,
    history_pull,
    history_push,
    history_push_pull,
    history_stale,
    history_take_grad,
)
from edgegrad.operators.mha_gat import mha_gat_n2n_bwd, mha_gat_n2n_fwd
from edgegrad.operators.mha_gat_v2 import mha_gat_v2_n2n_bwd, mha_gat_v2_n2n_fwd
from edgegrad.operators.mha_simple import mha_simple_n2n_bwd, mha_simple_n2n_fwd
from edgegrad.operators.pool import pool_n2s_bwd, pool_n2s_fwd
from edgegrad.operators.sddmm import sddmm_bwd, sddmm_fwd
from edgegrad.operators.spmm import spmm_bwd, spmm_fwd

# One line per operator family, and per module of kernels that families share.
FAMILIES = (
    agg_hg_basis,
    agg_simple,
    agg_concat,
    agg_weighted,
    agg_dmpnn,
    edge_update,
    pool,
    spmm,
    sddmm,
    edge_softmax,
    mha_gat,
    mha_gat_v2,
    mha_simple,
    history,
)
_LAUNCHERS = (
    make,
    rows,
    agg_hg_basis,
    gather_reduce_plans,
    per_edge_plans,
    sddmm,
    edge_softmax,
    mha_gat,
    mha_gat_v2,
    mha_simple,
    history,
)

OPERATORS = tuple(op for family in FAMILIES for op in family.OPERATORS)


def kernels() -> tuple[tuple[str, str], ...]:
    """Return every (source, kernel) that a plan can ask for, the shared ones included."""
    return tuple(k for module in _LAUNCHERS for k in module.KERNELS)


__all__ = [
    "OPERATORS",
    "AggOp",
    "agg_concat_e2n_bwd",
    "agg_concat_e2n_fwd",
    "agg_concat_n2n_bwd",
    "agg_concat_n2n_e2n_bwd",
    "agg_concat_n2n_e2n_fwd",
    "agg_concat_n2n_fwd",
    "agg_concat_weighted_n2n_bwd",
    "agg_concat_weighted_n2n_fwd",
    "agg_dmpnn_e2e_bwd",
    "agg_dmpnn_e2e_fwd",
    "agg_hg_basis_n2n_post_bwd",
    "agg_hg_basis_n2n_post_fwd",
    "agg_simple_e2n_bwd",
    "agg_simple_e2n_fwd",
    "agg_simple_n2n_bwd",
    "agg_simple_n2n_e2n_bwd",
    "agg_simple_n2n_e2n_fwd",
    "agg_simple_n2n_fwd",
    "agg_weighted_n2n_bwd",
    "agg_weighted_n2n_fwd",
    "edge_softmax_bwd",
    "edge_softmax_fwd",
    "history_accumulate_grad",
    "history_pull",
    "history_push",
    "history_push_pull",
    "history_stale",
    "history_take_grad",
    "kernels",
    "mha_gat_n2n_bwd",
    "mha_gat_n2n_fwd",
    "mha_gat_v2_n2n_bwd",
    "mha_gat_v2_n2n_fwd",
    "mha_simple_n2n_bwd",
    "mha_simple_n2n_fwd",
    "pool_n2s_bwd",
    "pool_n2s_fwd",
    "sddmm_bwd",
    "sddmm_fwd",
    "spmm_bwd",
    "spmm_fwd",
    "update_efeat_e2e_concat_bwd",
    "update_efeat_e2e_concat_fwd",
    "update_efeat_e2e_sum_bwd",
    "update_efeat_e2e_sum_fwd",
]
