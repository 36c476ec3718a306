"""R20: feature arrays of the wrong dtype, shape or place are named, with both sides."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from edgegrad.operators import agg_hg_basis_n2n_post_bwd, agg_hg_basis_n2n_post_fwd
from recipes.calls import PLAIN, G, W, X

ALLOWED = "expected float16 or bfloat16 or float32 or float64"


def _call(device: Any, half: str, **changes: Any) -> None:
    """A call on G0 with one basis; changes are arrays of the device."""
    arrays = {
        "input_embedding": device.array(X),
        "weights_combination": device.array(np.ones((1, 1))),
        "edge_weight": device.array(W),
    }
    if half == "fwd":
        arrays["output_embedding"] = device.poisoned((4, 2), np.float64)
        call = agg_hg_basis_n2n_post_fwd
    else:
        arrays["grad_input"] = device.poisoned((4, 2), np.float64)
        arrays["grad_weights"] = device.poisoned((1, 1), np.float64)
        arrays["grad_output"] = device.array(G)
        arrays["grad_edge_weight"] = device.poisoned((6,), np.float64)
        call = agg_hg_basis_n2n_post_bwd
    assert not changes.keys() - arrays.keys()
    arrays |= changes
    call(**arrays, graph=PLAIN.make(device))


HALVES = pytest.mark.parametrize("half", ["fwd", "bwd"])


@HALVES
@pytest.mark.parametrize("dtype", ["int64", "bool", "complex64"])
def test_r20_features_are_floats(device: Any, half: str, dtype: str) -> None:
    where = f"agg_hg_basis_n2n_post_{half}"
    x = device.array(np.ones((4, 2), dtype))
    with pytest.raises(TypeError, match=f"{where}: `input_embedding` has dtype {dtype}, {ALLOWED}"):
        _call(device, half, input_embedding=x)


@pytest.mark.parametrize(
    ("half", "name", "shape"),
    [
        ("fwd", "output_embedding", (4, 2)),
        ("fwd", "weights_combination", (1, 1)),
        ("fwd", "edge_weight", (6,)),
        ("bwd", "grad_input", (4, 2)),
        ("bwd", "grad_output", (4, 2)),
        ("bwd", "grad_weights", (1, 1)),
        ("bwd", "grad_edge_weight", (6,)),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "complex64"])
def test_r20_other_arrays_follow_the_features(
    device: Any, half: str, name: str, shape: tuple[int, ...], dtype: str
) -> None:
    message = f"agg_hg_basis_n2n_post_{half}: `{name}` has dtype {dtype}, expected float64"
    with pytest.raises(TypeError, match=message):
        _call(device, half, **{name: device.array(np.ones(shape, dtype))})


def test_r20_mixed_features_name_both(device: Any) -> None:
    out = device.array(np.ones((4, 2), np.float32))
    message = "`output_embedding` has dtype float32, expected float64, the dtype of `input_embed"
    with pytest.raises(TypeError, match=message):
        _call(device, "fwd", output_embedding=out)


@HALVES
@pytest.mark.parametrize(
    ("name", "shape", "message"),
    [
        ("input_embedding", (3, 2), r"shape \(3, 2\), expected \(n_src_nodes=4, dim_in\)"),
        ("input_embedding", (4,), r"shape \(4,\), expected \(n_src_nodes=4, dim_in\)"),
        ("edge_weight", (5,), r"shape \(5,\), expected \(n_indices=6\)"),
        ("edge_weight", (6, 1), r"shape \(6, 1\), expected \(n_indices=6\)"),
        ("weights_combination", (2, 1), r"shape \(2, 1\), expected \(n_edge_types=1, n_bases\)"),
    ],
)
def test_r20_shapes_name_both_numbers(
    device: Any, half: str, name: str, shape: tuple[int, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=f"`{name}` has {message}"):
        _call(device, half, **{name: device.array(np.ones(shape))})


def test_r20_output_shapes_name_both_numbers(device: Any) -> None:
    for half, name, size in (
        ("fwd", "output_embedding", "n_dst_nodes=4, dim_out=2"),
        ("bwd", "grad_output", "n_dst_nodes=4, dim_out=2"),
        ("bwd", "grad_input", "n_src_nodes=4, dim_in=2"),
    ):
        for shape in ((4, 3), (5, 2)):
            bad = device.poisoned(shape, np.float64)
            message = rf"`{name}` has shape \({shape[0]}, {shape[1]}\), expected \({size}\)"
            with pytest.raises(ValueError, match=message):
                _call(device, half, **{name: bad})


@HALVES
def test_r20_array_on_another_device_than_the_graph(device: Any, half: str) -> None:
    if device.name == "host":
        pytest.skip("there is one device; the other two runs mix it with theirs")
    message = "`input_embedding` has device cpu, expected cuda:0, where the graph is"
    with pytest.raises(ValueError, match=message):
        _call(device, half, input_embedding=X)
    name = "output_embedding" if half == "fwd" else "grad_input"
    with pytest.raises(ValueError, match=f"`{name}` has device cpu, expected cuda:0"):
        _call(device, half, **{name: np.zeros((4, 2))})


def test_r20_graph_on_another_device_than_its_parts(device: Any) -> None:
    if device.name == "host":
        pytest.skip("there is one device; the other two runs mix it with theirs")
    from edgegrad import make_csc

    offsets, indices = PLAIN.offsets, PLAIN.indices
    with pytest.raises(ValueError, match="`indices` has device cpu, expected cuda:0, as `offsets`"):
        make_csc(device.array(offsets), indices)
    with pytest.raises(ValueError, match="`indices` has device cuda:0, expected cpu, as `offsets`"):
        make_csc(offsets, device.array(indices))
