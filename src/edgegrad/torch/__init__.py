"""Operators, graphs and layers for PyTorch: autograd, torch.func, torch.compile, autocast."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from edgegrad.torch.attention import mha_gat, mha_gat_v2
from edgegrad.torch.csc_graph import CscGraph
from edgegrad.torch.functions import FUNCTIONS
from edgegrad.torch.nn import (
    GATConv,
    GATv2Conv,
    GCNConv,
    RGCNConv,
    SAGEConv,
    TransformerConv,
)
from edgegrad.torch.special_spmm import SpecialSpmm, special_spmm

if TYPE_CHECKING:  # what is made from the registrations

    def __getattr__(name: str) -> Callable[..., Any]: ...


__all__ = [
    "CscGraph",
    "GATConv",
    "GATv2Conv",
    "GCNConv",
    "RGCNConv",
    "SAGEConv",
    "SpecialSpmm",
    "TransformerConv",
    "mha_gat",
    "mha_gat_v2",
    "special_spmm",
]
globals().update(FUNCTIONS, __all__=[*__all__, *FUNCTIONS])
