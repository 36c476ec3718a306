"""`special_spmm`: the function of pyGAT without its defects."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is missing: pip install torch")

from torch import nn

import edgegrad
from edgegrad.torch import SpecialSpmm, special_spmm


def _matrix(rows: int, columns: int, n: int = 12) -> tuple[Any, Any]:
    generator = torch.Generator().manual_seed(rows)
    ends = (torch.randint(size, (n,), generator=generator) for size in (rows, columns))
    values = torch.randn(n, dtype=torch.float64, generator=generator)
    return torch.stack(tuple(ends)), values


def _dense(indices: Any, values: Any, shape: tuple[int, int]) -> Any:
    return torch.zeros(shape, dtype=values.dtype).index_put(tuple(indices), values, accumulate=True)


@pytest.mark.parametrize("shape", [(3, 7), (7, 3), (5, 5)])
@pytest.mark.parametrize("width", [(), (4,)], ids=["vector", "matrix"])
def test_any_shape(shape: tuple[int, int], width: tuple[int, ...]) -> None:
    """Fewer rows than columns, more, duplicates, and a vector."""
    indices, values = _matrix(*shape)
    b = torch.randn(shape[1], *width, dtype=torch.float64)
    leaves = (values.requires_grad_(), b.requires_grad_())
    got = special_spmm(indices, values, shape, b)
    expected = _dense(indices, values, shape) @ b
    torch.testing.assert_close(got, expected)
    for mine, other in zip(
        torch.autograd.grad(got.sin().sum(), leaves),
        torch.autograd.grad(expected.sin().sum(), leaves),
        strict=True,
    ):
        torch.testing.assert_close(mine, other)
    function = SpecialSpmm()
    assert torch.autograd.gradgradcheck(
        lambda v, b: function(indices, v, shape, b), leaves, fast_mode=True
    )


def test_a_tensor_of_indices_that_changes() -> None:
    indices, b = torch.tensor([[0, 1], [1, 0]]), torch.eye(2)
    values = torch.tensor([2.0, 3.0])
    assert special_spmm(indices, values, (2, 2), b).tolist() == [[0, 2], [3, 0]]
    indices[1] = torch.tensor([0, 1])
    assert special_spmm(indices, values, (2, 2), b).tolist() == [[2, 0], [0, 3]]
    assert special_spmm(indices.t().contiguous().t(), values, (2, 2), b).tolist() == [
        [2, 0],
        [0, 3],
    ]


def test_messages() -> None:
    indices, values = _matrix(3, 7)
    b = torch.randn(7, 2, dtype=torch.float64)
    for args, kind, message in (
        ((indices[0], values, (3, 7), b), ValueError, r"`indices` has shape \(12,\)"),
        ((indices, values, (3,), b), ValueError, "`shape` has 1 numbers"),
        ((indices, values, (2, 7), b), IndexError, r"dst\[\d+\]"),
        ((indices, values[:5], (3, 7), b), ValueError, r"`values` has shape \(5,\)"),
        ((indices, values, (3, 7), b[:6]), ValueError, r"`dense` has shape \(6, 2\)"),
        ((indices, values, (3, 7), b.float()), TypeError, "dtype"),
        ((indices, values, (3, 7), b[None]), ValueError, r"`b` has shape \(1, 7, 2\)"),
    ):
        with pytest.raises(kind, match=message) as caught:
            special_spmm(*args)
        assert isinstance(caught.value, edgegrad.ArgumentError)


class _SparseAttention(nn.Module):
    """The sparse layer of pyGAT: attention whose sums are products with sparse matrices."""

    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__()
        self.W = nn.Parameter(nn.init.xavier_normal_(torch.empty(in_features, out_features)))
        self.a = nn.Parameter(nn.init.xavier_normal_(torch.empty(1, 2 * out_features)))
        self.special_spmm = SpecialSpmm()

    def forward(self, x: Any, edge: Any) -> Any:
        n, h = len(x), x @ self.W
        scores = nn.functional.leaky_relu((self.a @ torch.cat((h[edge[0]], h[edge[1]]), 1).t())[0])
        weights = torch.exp(-scores)
        sums = self.special_spmm(edge, weights, (n, n), torch.ones(n, 1))
        return nn.functional.elu(self.special_spmm(edge, weights, (n, n), h) / sums)


def test_trains_the_sparse_layer_of_pygat() -> None:
    """Two groups of nodes, tied inside, noisy features: the layer tells them apart."""
    torch.manual_seed(0)
    n = 60
    labels = torch.arange(n) % 2
    edge = ((labels[:, None] == labels) & (torch.rand(n, n) < 0.3)).fill_diagonal_(True)
    edge = edge.nonzero().t()
    x = torch.randn(n, 8) + 0.7 * labels[:, None]
    model, out = _SparseAttention(8, 8), nn.Linear(8, 2)
    optimizer = torch.optim.Adam([*model.parameters(), *out.parameters()], lr=0.02)
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(out(model(x, edge)), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.3 * losses[0]
    assert (out(model(x, edge)).argmax(1) == labels).float().mean() > 0.95
