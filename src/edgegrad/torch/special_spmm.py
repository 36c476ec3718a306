"""Sparse times dense whose gradient touches the non-zeros alone; a sparse matrix is a COO list."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn
from torch.utils.weak import WeakTensorKeyDictionary

from edgegrad.differentiation import derivatives
from edgegrad.errors import wrong_type, wrong_value
from edgegrad.graph import Graph, from_coo
from edgegrad.torch.functions import call

_WHERE = "special_spmm"
# The graph of a tensor of indices, beside the shape and the version of the tensor it was made for.
_graphs = WeakTensorKeyDictionary()


def special_spmm(indices: Tensor, values: Tensor, shape: Sequence[int], b: Tensor) -> Tensor:
    """Multiply a sparse matrix, given by the places and values of its entries, with a dense one.

    Parameters
    ----------
    indices : Tensor (2, n), int32 or int64
        Row and column of each entry, in any order; entries of one place add up.
    values : Tensor (n,)
        float16, bfloat16, float32 or float64.
    shape : sequence of two int
        Rows R and columns C.
    b : Tensor (C, d) or (C,), dtype of `values`

    Returns
    -------
    Tensor (R, d) or (R,)
        With gradients of any order to `values` and `b`: O(n) numbers, never a matrix (R, C).

    Raises
    ------
    ArgumentError
        If a tensor is not as described, or an index is out of range.

    Notes
    -----
    The sorted form of `indices` is kept for as long as that tensor lives unchanged. In a function
    to be compiled, make the graph outside, with `edgegrad.from_coo`, and call `spmm`.
    """
    if not isinstance(b, Tensor):
        raise wrong_type(_WHERE, "b", f"type {type(b).__name__}", "a torch.Tensor")
    if b.dim() not in (1, 2):
        raise wrong_value(_WHERE, "b", f"shape {tuple(b.shape)}", "(C, d) or (C,)")
    graph = _graph(indices, shape)
    dense = b if b.dim() == 2 else b[:, None]
    (product,) = call(derivatives("spmm"), graph, (values, dense))
    return product if b.dim() == 2 else product[:, 0]


class SpecialSpmm(nn.Module):
    """`special_spmm` as a module without parameters."""

    def forward(self, indices: Tensor, values: Tensor, shape: Sequence[int], b: Tensor) -> Tensor:
        """Call `special_spmm`."""
        return special_spmm(indices, values, shape, b)


def _graph(indices: Tensor, shape: Sequence[int]) -> Graph:
    if not isinstance(indices, Tensor):
        raise wrong_type(_WHERE, "indices", f"type {type(indices).__name__}", "a torch.Tensor")
    if indices.dim() != 2 or indices.shape[0] != 2:
        raise wrong_value(_WHERE, "indices", f"shape {tuple(indices.shape)}", "(2, n)")
    if len(shape) != 2:
        raise wrong_value(_WHERE, "shape", f"{len(shape)} numbers", "rows and columns")
    rows, columns = (int(n) for n in shape)
    key = (rows, columns, indices._version)
    known = _graphs.get(indices)
    if known is None or known[0] != key:
        row, column = (indices[i].contiguous() for i in range(2))
        known = key, from_coo(column, row, columns, rows, bipartite=True)
        _graphs[indices] = known
    return known[1]
