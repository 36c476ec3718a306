"""R15 and R16: views. Rows may be apart; anything else is refused, never read as if contiguous."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import edgegrad
from edgegrad.operators import agg_hg_basis_n2n_post_bwd, agg_hg_basis_n2n_post_fwd
from recipes.calls import (
    PLAIN,
    WEIGHTED,
    WEIGHTED_DW,
    WEIGHTED_DX,
    G,
    W,
    X,
    array_module,
    assert_close,
    backward,
    forward,
    plain,
)

TWO = plain([0, 1, 3], [0, 0, 1], 2)
A = np.array([[1.0, 3], [2, 4]])
B = np.arange(10.0).reshape(2, 5)


def _refused(argument: str, strides: str) -> Any:
    return pytest.raises(
        ValueError, match=rf"`{argument}` has strides {strides}, expected .*stride 1"
    )


def _every_second(device: Any, a: np.ndarray) -> Any:
    """The values of `a` in every second element of the last axis, NaN or -1 between them."""
    wide = np.full((*a.shape[:-1], 2 * a.shape[-1]), np.nan if a.dtype.kind == "f" else -1, a.dtype)
    wide[..., ::2] = a
    return device.array(wide)[..., ::2]


def _rows_apart(device: Any, a: np.ndarray) -> Any:
    """The values of `a` in every second row, columns 1 to n of n + 2, NaN around them."""
    wide = np.full((2 * len(a), a.shape[1] + 2), np.nan, a.dtype)
    wide[::2, 1:-1] = a
    return device.array(wide)[::2, 1:-1]


def _upwards(device: Any, a: np.ndarray) -> Any:
    """The values of `a` in memory from the last row to the first."""
    return device.array(a[::-1])[::-1]


# ---- R15: gradients that arrive from above


def test_r15_gradient_of_a_broadcast_scalar_is_refused_its_copy_is_right(device: Any) -> None:
    struct, x = PLAIN.make(device), device.array(X)
    xp = array_module(device)
    g = xp.broadcast_to(device.array(np.array(1.0)), (4, 2))
    with _refused("grad_output", r"\(0, 0\)"):
        backward(device, struct, g, x)
    expected = [[2, 2], [2, 2], [1, 1], [1, 1]]
    assert_close(backward(device, struct, xp.ascontiguousarray(g), x).x, expected)


def test_r15_gradient_of_a_broadcast_row(device: Any) -> None:
    struct, x = PLAIN.make(device), device.array(X)
    w = device.array(W[PLAIN.edge_ids])
    xp = array_module(device)
    g = xp.broadcast_to(device.array(np.ones(2)), (4, 2))
    assert_close(backward(device, struct, g, x).x, [[2, 2], [2, 2], [1, 1], [1, 1]])
    strided = backward(device, struct, g, x, edge_weight=w)
    copied = backward(device, struct, xp.ascontiguousarray(g), x, edge_weight=w)
    np.testing.assert_array_equal(strided.x, copied.x)
    np.testing.assert_array_equal(strided.edges, copied.edges)


def test_r15_columns_apart_are_refused(device: Any) -> None:
    struct, x = PLAIN.make(device), device.array(X)
    for g, strides in (
        (device.array(G.T).T, r"\(1, 4\)"),  # Fortran order
        (_every_second(device, G), r"\(4, 2\)"),
        (device.array(G[:, ::-1])[:, ::-1], r"\(2, -1\)"),
    ):
        with _refused("grad_output", strides):
            backward(device, struct, g, x)
        copy = array_module(device).ascontiguousarray(g)
        w = device.array(W[PLAIN.edge_ids])
        d = backward(device, struct, copy, x, edge_weight=w)
        assert_close(d.x, WEIGHTED_DX)
        assert_close(d.edges, WEIGHTED_DW)


@pytest.mark.parametrize("place", [_rows_apart, _upwards], ids=["rows apart", "upwards"])
def test_r15_rows_apart_are_read_where_they_are(
    device: Any, T: Any, place: Callable[[Any, np.ndarray], Any]
) -> None:
    struct = PLAIN.make(device)
    w = device.array(W[PLAIN.edge_ids].astype(T))
    g, x = place(device, G.astype(T)), place(device, X.astype(T))
    d = backward(device, struct, g, x, edge_weight=w)
    assert_close(d.x, WEIGHTED_DX)
    assert_close(d.edges, WEIGHTED_DW)


# ---- R16: inputs


def test_r16_transposed_input_is_refused_its_copy_is_right(device: Any) -> None:
    struct, x = TWO.make(device), device.array(A).T
    with _refused("input_embedding", r"\(1, 2\)"):
        forward(device, struct, x)
    copy = array_module(device).ascontiguousarray(x)
    assert_close(forward(device, struct, copy), [[1, 2], [4, 6]])


def test_r16_every_second_column_is_refused_its_copy_is_right(device: Any) -> None:
    struct, x = TWO.make(device), device.array(B)[:, ::2]
    with _refused("input_embedding", r"\(5, 2\)"):
        forward(device, struct, x)
    copy = array_module(device).ascontiguousarray(x)
    assert_close(forward(device, struct, copy), [[0, 2, 4], [5, 9, 13]])


def test_r16_accepted_views(device: Any, T: Any) -> None:
    struct, b = TWO.make(device), device.array(B.astype(T))
    assert_close(forward(device, struct, b[:, :4]), [[0, 1, 2, 3], [5, 7, 9, 11]])
    assert_close(forward(device, struct, b[:, 1:]), [[1, 2, 3, 4], [7, 9, 11, 13]])
    assert_close(forward(device, struct, b[::-1]), [[5, 6, 7, 8, 9], [5, 7, 9, 11, 13]])
    broadcast = array_module(device).broadcast_to(b[1], (2, 5))
    expected = [[5, 6, 7, 8, 9], [10, 12, 14, 16, 18]]
    assert_close(forward(device, struct, broadcast), expected)


def test_r16_batch_axis_of_any_stride(device: Any) -> None:
    struct, xp = TWO.make(device), array_module(device)
    b = device.array(np.stack([B, 10 * B, -B]))
    for x in (b[::-1], b[::2], xp.broadcast_to(b[:1], (4, 2, 5)), xp.moveaxis(b, 1, 0)[:, :2]):
        each = [forward(device, struct, m) for m in x]
        np.testing.assert_array_equal(forward(device, struct, x), np.stack(each))


def test_r16_parameters(device: Any) -> None:
    struct, x = PLAIN.make(device), device.array(X)
    w = _every_second(device, W)
    with _refused("edge_weight", r"\(2,\)"):
        forward(device, struct, x, edge_weight=w)
    bases = np.array([[1.0, -2, 0.5]])
    with _refused("weights_combination", r"\(6, 2\)"):
        forward(device, struct, x, _every_second(device, bases))
    wide = device.array(np.array([[np.nan, 1.0, -2, 0.5, np.nan]]))
    expected = forward(device, struct, x, device.array(bases))
    np.testing.assert_array_equal(forward(device, struct, x, wide[:, 1:4]), expected)


def test_r16_parameter_rows_apart(device: Any, T: Any) -> None:
    two = plain([0, 2], [0, 1], 2, bipartite=True)
    types = device.array(np.array([0, 1], np.int32))
    ids = (device.array(a.astype(np.int32)) for a in (two.offsets, two.indices))
    struct = edgegrad.make_bipartite_csc_hg(*ids, 2, 0, 2, None, None, types)
    weights = _rows_apart(device, np.array([[1, 2, 3], [-1, 0.5, 4]], T))
    x = device.array(np.array([[1], [2]], T))
    assert_close(forward(device, struct, x, weights), [[-1, 3, 11]])
    back = device.array(np.full((4, 5), np.nan, T))
    g = device.array(np.array([[1, 10, 100]], T))
    agg_hg_basis_n2n_post_bwd(None, back[::2, 1:4], g, x, weights, struct)
    got = device.numpy(back)
    assert_close(got[::2, 1:4], [[1, 10, 100], [2, 20, 200]])
    assert np.isnan(got[1::2].astype(float)).all()
    assert np.isnan(got[:, [0, 4]].astype(float)).all()


# ---- R16: outputs


def test_r16_output_columns_apart_are_refused_and_left_alone(device: Any) -> None:
    struct, x = TWO.make(device), device.array(B[:, :2])
    for out, strides in (
        (device.poisoned((2, 4), np.float64)[:, ::2], r"\(4, 2\)"),
        (device.poisoned((2, 2), np.float64).T, r"\(1, 2\)"),
    ):
        with _refused("output_embedding", strides):
            agg_hg_basis_n2n_post_fwd(out, x, None, struct)
        with _refused("grad_input", strides):
            agg_hg_basis_n2n_post_bwd(out, None, x, x, None, struct)
        assert np.isnan(device.numpy(out)).all()


def test_r16_rows_of_an_output_may_not_be_one(device: Any) -> None:
    struct, x = TWO.make(device), device.array(B[:, :2])
    row = device.poisoned((1, 2), np.float64)
    if device.name == "host":  # NumPy's broadcast views are read-only, which is refused first
        out = np.lib.stride_tricks.as_strided(row, (2, 2), (0, 8))
    else:
        out = array_module(device).broadcast_to(row, (2, 2))
    with pytest.raises(ValueError, match=r"`output_embedding` has .*, expected an array that can"):
        agg_hg_basis_n2n_post_fwd(out, x, None, struct)
    assert np.isnan(device.numpy(row)).all()


def _assert_only_written(whole: np.ndarray, rows: slice, columns: slice, expected: Any) -> None:
    assert_close(whole[rows, columns], expected)
    around = np.ones(whole.shape, bool)
    around[rows, columns] = False
    assert np.isnan(whole[around].astype(float)).all()


@pytest.mark.parametrize("rows", [slice(None, None, 2), slice(None, None, -2)], ids=str)
def test_r16_output_rows_apart_are_written_where_they_are(device: Any, T: Any, rows: slice) -> None:
    struct, x, g = PLAIN.make(device), device.array(X.astype(T)), device.array(G.astype(T))
    w = device.array(W[PLAIN.edge_ids].astype(T))
    columns = slice(1, 3)
    out, dx = device.poisoned((8, 4), T), device.poisoned((8, 4), T)
    agg_hg_basis_n2n_post_fwd(out[rows, columns], x, None, struct, edge_weight=w)
    agg_hg_basis_n2n_post_bwd(dx[rows, columns], None, g, x, None, struct, edge_weight=w)
    _assert_only_written(device.numpy(out), rows, columns, WEIGHTED)
    _assert_only_written(device.numpy(dx), rows, columns, WEIGHTED_DX)


# ---- R16: ids, and items that do not lie on their own size


@pytest.mark.parametrize("name", ["offsets", "indices", "edge_types", "map_csc_to_coo"])
def test_r16_ids_apart_are_refused(device: Any, name: str) -> None:
    ids = {
        "offsets": PLAIN.offsets,
        "indices": PLAIN.indices,
        "edge_types": PLAIN.edge_types,
        "map_csc_to_coo": PLAIN.edge_ids,
    }
    arrays = {k: device.array(a.astype(np.int32)) for k, a in ids.items()}
    arrays[name] = _every_second(device, ids[name].astype(np.int32))
    with _refused(name, r"\(2,\)"):
        edgegrad.make_csc_hg(**arrays, n_node_types=0, n_edge_types=1, node_types=None)


def test_r16_field_of_packed_records_is_refused() -> None:
    records = np.zeros((2, 2), np.dtype([("flag", "u1"), ("value", "<f4")]))
    offsets, indices = (a.astype(np.int32) for a in (TWO.offsets, TWO.indices))
    types = np.zeros(3, np.int32)
    struct = edgegrad.make_csc_hg(offsets, indices, 0, 1, None, types)
    out = np.full((2, 2), np.nan, np.float32)
    with pytest.raises(ValueError, match=r"`input_embedding` has a stride of .* bytes, expected a"):
        agg_hg_basis_n2n_post_fwd(out, records["value"], None, struct)
    assert np.isnan(out).all()
