"""Operators: pairs of plain functions that write their outputs and the gradients asked for."""

from edgegrad.backends import rows
from edgegrad.graph import make
from edgegrad.operators import agg_hg_basis, agg_simple, gather_reduce_plans, per_edge_plans, spmm
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
from edgegrad.operators.spmm import spmm_bwd, spmm_fwd

# One line per operator family, and per module of kernels that families share.
FAMILIES = (
    agg_hg_basis,
    agg_simple,
    spmm,
)
_LAUNCHERS = (
    make,
    rows,
    agg_hg_basis,
    gather_reduce_plans,
    per_edge_plans,
)

OPERATORS = tuple(op for family in FAMILIES for op in family.OPERATORS)


def kernels() -> tuple[tuple[str, str], ...]:
    """Return every (source, kernel) that a plan can ask for, the shared ones included."""
    return tuple(k for module in _LAUNCHERS for k in module.KERNELS)


__all__ = [
    "OPERATORS",
    "AggOp",
    "agg_hg_basis_n2n_post_bwd",
    "agg_hg_basis_n2n_post_fwd",
    "agg_simple_e2n_bwd",
    "agg_simple_e2n_fwd",
    "agg_simple_n2n_bwd",
    "agg_simple_n2n_e2n_bwd",
    "agg_simple_n2n_e2n_fwd",
    "agg_simple_n2n_fwd",
    "kernels",
    "spmm_bwd",
    "spmm_fwd",
]
