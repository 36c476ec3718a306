"""Operators: pairs of plain functions that write their outputs and the gradients asked for."""

from edgegrad.backends import rows
from edgegrad.graph import make
from edgegrad.operators import agg_hg_basis, history, mha_gat, mha_gat_v2, mha_simple
from edgegrad.operators.agg_hg_basis import agg_hg_basis_n2n_post_bwd, agg_hg_basis_n2n_post_fwd
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

# One line per operator family.
FAMILIES = (agg_hg_basis, history, mha_gat, mha_gat_v2, mha_simple)

OPERATORS = tuple(op for family in FAMILIES for op in family.OPERATORS)


def kernels() -> tuple[tuple[str, str], ...]:
    """Return every (source, kernel) that a plan can ask for, the shared ones included."""
    return tuple(k for module in (make, rows, *FAMILIES) for k in module.KERNELS)


__all__ = [
    "OPERATORS",
    "agg_hg_basis_n2n_post_bwd",
    "agg_hg_basis_n2n_post_fwd",
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
]
