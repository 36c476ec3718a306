"""Memory of the backward of a sparse product: `python scripts/bench/special_spmm_memory.py`.

Peak of resident memory over what is resident before (Linux), of a product of a random sparse matrix
with a dense one and its backward, where the values of the sparse matrix have a gradient. torch's
own builds a dense matrix of rows x columns for it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from edgegrad.torch import special_spmm
from measure import extra_megabytes


def _torch(indices: Tensor, values: Tensor, n: int, b: Tensor) -> Tensor:
    matrix = torch.sparse_coo_tensor(indices, values, (n, n), check_invariants=False)
    return torch.sparse.mm(matrix, b)


def _ours(indices: Tensor, values: Tensor, n: int, b: Tensor) -> Tensor:
    return special_spmm(indices, values, (n, n), b)


def _backward(
    product: Callable[..., Tensor], n: int, edges: int, width: int
) -> Callable[[], object]:
    indices = torch.randint(n, (2, edges), generator=torch.Generator().manual_seed(0))
    values = torch.randn(edges, requires_grad=True)
    b = torch.randn(n, width, requires_grad=True)
    return lambda: product(indices, values, n, b).sum().backward()


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=20_000)
    parser.add_argument("--edges", type=int, default=200_000)
    parser.add_argument("--width", type=int, default=8)
    args = parser.parse_args(argv)
    for product in (_ours, _torch):  # a small one first: what is loaded once is not counted
        _backward(product, 100, 1_000, args.width)()
    for name, product in (("edgegrad", _ours), ("torch.sparse.mm", _torch)):
        used = extra_megabytes(_backward(product, args.nodes, args.edges, args.width))
        print(f"{name:<16} {used:8.1f} MB")


if __name__ == "__main__":
    main()
