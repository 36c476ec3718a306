"""`interop.view` of PyTorch and JAX arrays, and what these take back, without a copy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import devices
import edgegrad
import graphs
from edgegrad.interop import ArrayView, view


def seen(a: Any, stream_id: int = 0) -> ArrayView:
    return view("f", "a", a, stream_id)


@pytest.fixture(scope="module")
def torch() -> Any:
    return pytest.importorskip("torch", reason="PyTorch is not installed")


@pytest.fixture(scope="module")
def jnp() -> Any:
    return pytest.importorskip("jax", reason="JAX is not installed").numpy


TORCH_DTYPES = (
    *("float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64"),
    *("uint8", "bool", "complex64"),
)


@pytest.mark.parametrize("dtype", TORCH_DTYPES)
def test_torch(torch: Any, dtype: str) -> None:
    a = torch.zeros(3, 4, dtype=getattr(torch, dtype))
    v = seen(a)
    assert (v.ptr, v.shape, v.strides) == (a.data_ptr(), (3, 4), (4, 1))
    assert (v.dtype, v.device, v.readonly) == (dtype, "cpu", False)


def test_torch_views(torch: Any) -> None:
    a = torch.arange(24.0).reshape(4, 6)
    assert seen(a[1:, 2:4]).ptr == a.data_ptr() + 8 * 4
    assert seen(a[1:, 2:4]).strides == (6, 1)
    assert seen(a.t()).strides == (1, 6)
    assert not seen(a[:, ::2]).rows_contiguous
    expanded = torch.ones(1, 5).expand(3, 5)
    assert seen(expanded).strides == (0, 1)
    assert seen(expanded).self_overlapping
    assert seen(torch.zeros(0, 4)).shape == (0, 4)
    assert seen(torch.tensor(1.0)).shape == ()


def test_torch_with_gradients(torch: Any) -> None:
    """Viewed as if detached: neither the tensor nor its autograd state changes."""
    a = torch.ones(2, 3, requires_grad=True)
    (a * 2).sum().backward()
    grad, version = a.grad.clone(), a._version
    v = seen(a)
    assert (v.ptr, v.shape, v.dtype) == (a.data_ptr(), (2, 3), "float32")
    assert a.requires_grad
    assert torch.equal(a.grad, grad)
    assert a._version == version
    assert seen(torch.nn.Parameter(a.detach())).ptr == a.data_ptr()
    computed = a * 2
    assert seen(computed).ptr == computed.data_ptr()
    assert computed.grad_fn is not None
    with torch.no_grad():
        assert seen(torch.nn.Linear(3, 2).weight).shape == (2, 3)
    half = torch.ones(2, dtype=torch.bfloat16, requires_grad=True)
    assert (seen(half).dtype, seen(half).ptr) == ("bfloat16", half.data_ptr())


def test_torch_that_is_no_memory(torch: Any) -> None:
    for a in (torch.eye(3).to_sparse(), torch.empty(2, device="meta"), torch.float32):
        with pytest.raises((TypeError, ValueError), match="f: `a` has .+, expected") as caught:
            seen(a)
        assert isinstance(caught.value, edgegrad.ArgumentError)
        assert "\n" not in str(caught.value)


def test_torch_of_other_values_than_its_memory(torch: Any) -> None:
    """Tensors that are negated or conjugated when they are read; complex ones are never taken."""
    conjugated = torch.tensor([1 + 2j]).conj()
    negated = conjugated.imag
    assert negated.is_neg()
    with pytest.raises(ValueError, match="f: `a` has .*sign.*, expected .*resolve_neg"):
        seen(negated)
    assert np.asarray(seen(negated.resolve_neg())).item() == -2
    graph = graphs.G0.make(devices.Host())
    with pytest.raises(TypeError, match="`input_embedding` has dtype complex64"):
        _worked_example(lambda a: conjugated, torch.zeros(4, 4), graph)


def test_torch_keeps_its_memory(torch: Any) -> None:
    v = seen(torch.full((1000,), 7.0))
    junk = [torch.zeros(1000) for _ in range(20)]
    np.testing.assert_array_equal(np.asarray(v), 7)
    del junk


def test_back_to_torch(torch: Any) -> None:
    a = np.arange(24, dtype=np.float32).reshape(4, 6)[:, 1:4]
    taken = torch.from_dlpack(seen(a))
    assert taken.data_ptr() == a.ctypes.data
    assert taken.stride() == (6, 1)
    np.testing.assert_array_equal(taken.numpy(), a)
    half = torch.arange(4, dtype=torch.bfloat16)
    assert torch.from_dlpack(seen(half)).data_ptr() == half.data_ptr()
    assert torch.from_dlpack(seen(half)).dtype == torch.bfloat16
    assert torch.from_dlpack(seen(np.zeros((0, 3)))).shape == (0, 3)
    assert torch.as_tensor(np.asarray(seen(a))).data_ptr() == a.ctypes.data


def _worked_example(array: Any, empty: Any, graph: Any) -> Any:
    """The example of the spec through somebody's arrays."""
    x = array([[1, -2], [3, 0.5], [-1.5, 4], [2, 1.5]])
    weights = array([[1, 0], [0.5, 0.5], [-1, 2]])
    edgegrad.operators.agg_hg_basis_n2n_post_fwd(empty, x, weights, graph)
    return empty


EXPECTED = [[1.5, 4.5, 0, 0], [1, -2, 0, 0], [0, 0, 0, 0], [0, -2.25, 6, 2.25]]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_torch_in_an_operator(torch: Any, dtype: str) -> None:
    T = getattr(torch, dtype)
    ids = [torch.tensor(a) for a in (graphs.G0.offsets, graphs.G0.indices)]
    types = torch.tensor(graphs.G0.edge_types)
    graph = edgegrad.make_csc_hg(*ids, 0, 3, None, types)
    assert graph.offsets.ptr == ids[0].data_ptr()
    for grad in (False, True):
        out = _worked_example(
            lambda a, grad=grad: torch.tensor(a, dtype=T, requires_grad=grad),
            torch.full((4, 4), torch.nan, dtype=T),
            graph,
        )
        np.testing.assert_array_equal(out.to(torch.float64).numpy(), EXPECTED)


def test_torch_output_must_not_be_expanded(torch: Any) -> None:
    graph = graphs.G0.make(devices.Host())
    with pytest.raises(ValueError, match="overlapping rows, strides"):
        _worked_example(torch.tensor, torch.zeros(1, 4).expand(4, 4), graph)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int32", "uint8", "bool"])
def test_jax(jnp: Any, dtype: str) -> None:
    a = jnp.ones((3, 4), dtype)
    v = seen(a)
    assert (v.shape, v.strides, v.dtype, v.device) == ((3, 4), (4, 1), dtype, "cpu")
    assert v.ptr == a.unsafe_buffer_pointer()
    assert v.readonly, "JAX arrays never change"


def test_jax_in_an_operator(jnp: Any) -> None:
    graph = graphs.G0.make(devices.Host())
    for dtype in ("bfloat16", "float32"):
        out = np.full((4, 4), np.nan, jnp.dtype(dtype))
        _worked_example(lambda a, dtype=dtype: jnp.array(a, dtype), out, graph)
        np.testing.assert_array_equal(out.astype(float), EXPECTED)
    with pytest.raises(ValueError, match="`output_embedding` has read-only memory"):
        _worked_example(lambda a: jnp.array(a, "float32"), jnp.zeros((4, 4)), graph)


def test_jax_graphs(jnp: Any) -> None:
    ids = [jnp.array(a, "int32") for a in (graphs.G0.offsets, graphs.G0.indices)]
    graph = edgegrad.make_csc(*ids)
    assert graph.offsets.ptr == ids[0].unsafe_buffer_pointer()


def test_back_to_jax(jnp: Any) -> None:
    a = np.arange(64, dtype=np.float32)
    np.testing.assert_array_equal(jnp.from_dlpack(seen(a)), a)
    np.testing.assert_array_equal(jnp.asarray(np.asarray(seen(a))), a)


def test_jax_exported_again_stays_read_only(jnp: Any) -> None:
    taken = np.asarray(seen(jnp.ones(4)))
    assert not taken.flags.writeable
    assert not np.from_dlpack(seen(jnp.ones(4))).flags.writeable
