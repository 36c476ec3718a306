"""What automatic mixed precision does to the operators.

Inside ``torch.autocast`` tensors of several dtypes meet: those that matrix products made, in the
lower precision, and parameters, in float32. The rules:

- Attention (``mha_*``) works in autocast's dtype, like torch's own attention: features are cast to
  it. Attention weights and edge biases stay as they are; float32 beside half types is legal.
- All other operators work in the widest dtype among their features, as `torch.cat` does: the others
  are cast to it, nothing is narrowed. Weights of edges and bases stay as they are where that is
  legal, else they are cast to the dtype of the features.
- Sums are kept in float32 whatever the dtype, and float64 is left alone.

Outside autocast nothing is cast: several dtypes are a TypeError.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from edgegrad.differentiation import Derivatives

_WIDTH = {torch.float16: 1, torch.bfloat16: 1, torch.float32: 2, torch.float64: 3}


def autocast(d: Derivatives, arrays: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
    """Return the inputs of an operator in the dtypes that autocast, if it is on, asks for."""
    device = "cpu"
    for a in arrays:
        if a is not None:
            device = a.device.type
            break
    if not torch.is_autocast_enabled(device):
        return arrays
    pairs = list(zip(d.op.inputs, arrays, strict=True))
    features = [a for x, a in pairs if a is not None and _is_feature(x.dtype, a)]
    if not features or any(a.dtype == torch.float64 for a in features):
        return arrays
    lower = torch.get_autocast_dtype(device)
    dtype = max((a.dtype for a in features), key=lambda t: _WIDTH[t])
    if d.name.startswith("mha_"):
        dtype = lower
    elif _WIDTH[dtype] == 1 and any(a.dtype != dtype for a in features):
        dtype = torch.float32  # float16 beside bfloat16
    return [a if a is None else _cast(x.dtype, a, dtype) for x, a in pairs]


def _is_feature(declared: str, a: Tensor) -> bool:
    return declared == "T" and a.dtype in _WIDTH


def _cast(declared: str, a: Tensor, dtype: torch.dtype) -> Tensor:
    """Cast features; a companion too, unless it is in float32, which is legal beside them."""
    is_companion = declared.isupper() and declared not in ("T", "A") and a.dtype != torch.float32
    return a.to(dtype) if _is_feature(declared, a) or is_companion else a
