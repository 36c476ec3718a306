"""R26 and R28: arrays of other libraries, read-only arrays, and what is no array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from devices import Host
from edgegrad.operators import agg_hg_basis_n2n_post_bwd, agg_hg_basis_n2n_post_fwd
from recipes.calls import (
    PLAIN,
    SUM,
    SUM_DX,
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
)

HOST = Host()
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


class Exporter:
    """An array of a library that knows nothing but DLPack."""

    def __init__(self, array: Any) -> None:
        self.array, self.shape, self.dtype = array, array.shape, array.dtype

    def __dlpack__(self, **kwargs: Any) -> Any:
        return self.array.__dlpack__(**kwargs)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


class OldExporter(Exporter):
    """The same, from before DLPack 1.0."""

    def __dlpack__(self, stream: int | None = None) -> Any:  # type: ignore[override]
        return self.array.__dlpack__(**({} if stream is None else {"stream": stream}))


def _read_only(a: Any) -> np.ndarray:
    frozen = np.array(a)
    frozen.flags.writeable = False
    return frozen


def _import_torch() -> Any:
    return pytest.importorskip("torch", reason="PyTorch is not installed")


def _torch(a: np.ndarray, **options: Any) -> Any:
    torch = _import_torch()
    return torch.tensor(a.astype(np.float32), **{"dtype": torch.float64, **options})


def _torch_leaf(a: np.ndarray) -> Any:
    return _torch(a, requires_grad=True)


def _torch_inner(a: np.ndarray) -> Any:
    return _torch(a, requires_grad=True) * 1  # has a grad_fn


def _torch_parameter(a: np.ndarray) -> Any:
    tensor = _torch(a)
    return _import_torch().nn.Parameter(tensor)


def _jax(a: np.ndarray, dtype: Any = np.float32) -> Any:
    jnp = pytest.importorskip("jax.numpy", reason="JAX is not installed")
    return jnp.asarray(a.astype(np.float32), dtype)


def _memmap(a: np.ndarray, folder: Any) -> np.ndarray:
    mapped = np.memmap(folder / "features", a.dtype, "w+", shape=a.shape)
    mapped[...] = a
    return mapped


KINDS: dict[str, tuple[Callable[[np.ndarray], Any], Any]] = {
    "torch": (_torch, np.float64),
    "torch, requires grad": (_torch_leaf, np.float64),
    "torch, inside a graph": (_torch_inner, np.float64),
    "torch parameter": (_torch_parameter, np.float64),
    "jax": (_jax, np.float32),
    "read-only NumPy": (_read_only, np.float64),
    "DLPack": (Exporter, np.float64),
    "read-only DLPack": (lambda a: Exporter(_read_only(a)), np.float64),
    "old DLPack": (OldExporter, np.float64),
    "memoryview": (memoryview, np.float64),
}


# ---- R26


@pytest.mark.parametrize("kind", KINDS)
def test_r26_inputs_of_every_kind(kind: str) -> None:
    make, dtype = KINDS[kind]
    x, g, w = (make(a.astype(dtype)) for a in (X, G, W[PLAIN.edge_ids]))
    struct = PLAIN.make(HOST)
    if kind == "memoryview":  # has no dtype of NumPy's, so the helpers cannot ask for it
        out = HOST.poisoned((4, 2), dtype)
        agg_hg_basis_n2n_post_fwd(out, x, None, struct, edge_weight=w)
        assert_close(out, WEIGHTED)
        return
    assert_close(forward(HOST, struct, x, edge_weight=w, dtype=dtype), WEIGHTED)
    dx, dw = HOST.poisoned((4, 2), dtype), HOST.poisoned((6,), dtype)
    agg_hg_basis_n2n_post_bwd(dx, None, g, x, None, struct, edge_weight=w, grad_edge_weight=dw)
    assert_close(dx, WEIGHTED_DX)
    assert_close(dw, np.array(WEIGHTED_DW)[PLAIN.edge_ids])


@pytest.mark.parametrize("make", [_torch_leaf, _torch_inner, _torch_parameter])
def test_r26_autograd_state_is_left_alone(make: Callable[[np.ndarray], Any]) -> None:
    x = make(X)
    before = x.detach().clone()
    torch = _import_torch()
    function, version = x.grad_fn, x._version
    with torch.no_grad():
        assert_close(forward(HOST, PLAIN.make(HOST), x, dtype=np.float64), SUM)
    assert x.requires_grad
    assert x.grad_fn is function
    assert x._version == version
    assert not x.is_leaf or x.grad is None
    assert torch.equal(x.detach(), before)


def test_r26_torch_views() -> None:
    torch = _import_torch()
    struct = PLAIN.make(HOST)
    wide = torch.full((8, 4), torch.nan, dtype=torch.float64)
    wide[::2, 1:3] = _torch(X)
    assert_close(forward(HOST, struct, wide[::2, 1:3], dtype=np.float64), SUM)
    ones = torch.ones(2, dtype=torch.float64).expand(4, 2)
    assert_close(forward(HOST, struct, ones, dtype=np.float64)[:, 0], [2, 1, 0, 3])
    with pytest.raises(ValueError, match=r"`input_embedding` has strides \(1, 4\), expected"):
        forward(HOST, struct, _torch(X).T.contiguous().T, dtype=np.float64)


def test_r26_torch_tensors_are_written() -> None:
    torch = _import_torch()
    out, dx = (torch.full((4, 2), torch.nan, dtype=torch.float64) for _ in range(2))
    struct, x, g = PLAIN.make(HOST), _torch(X), _torch(G)
    agg_hg_basis_n2n_post_fwd(out, x, None, struct)
    agg_hg_basis_n2n_post_bwd(dx, None, g, x, None, struct)
    assert_close(out.numpy(), SUM)
    assert_close(dx.numpy(), SUM_DX)


@pytest.mark.parametrize("make", [_read_only, lambda a: Exporter(_read_only(a))])
def test_r26_read_only_outputs_are_refused(make: Callable[[np.ndarray], Any]) -> None:
    struct, seven = PLAIN.make(HOST), np.full((4, 2), 7.0)
    out = make(seven)
    with pytest.raises(ValueError, match="`output_embedding` has read-only memory, expected"):
        agg_hg_basis_n2n_post_fwd(out, X, None, struct)
    with pytest.raises(ValueError, match="`grad_input` has read-only memory, expected"):
        agg_hg_basis_n2n_post_bwd(out, None, G, X, None, struct)
    assert (np.from_dlpack(out) == 7).all()


def test_r26_jax_arrays_are_no_outputs() -> None:
    out = _jax(np.full((4, 2), 7.0))
    with pytest.raises(ValueError, match="`output_embedding` has read-only memory, expected"):
        agg_hg_basis_n2n_post_fwd(out, X.astype(np.float32), None, PLAIN.make(HOST))
    assert (np.asarray(out) == 7).all()


def test_r26_graphs_of_other_libraries_arrays() -> None:
    import edgegrad

    arrays = (PLAIN.offsets.astype(np.int32), PLAIN.indices.astype(np.int32), PLAIN.edge_types)
    torch = _import_torch()
    for convert in (torch.tensor, _read_only, Exporter):
        offsets, indices, types = (convert(a) for a in arrays)
        struct = edgegrad.make_csc_hg(offsets, indices, 0, 1, None, types)
        assert_close(forward(HOST, struct, X), SUM)


# ---- R28: bfloat16


@pytest.mark.parametrize("library", ["ml_dtypes", "read-only", "memmap", "torch", "jax"])
def test_r28_bfloat16(library: str, tmp_path: Any) -> None:
    def make(a: np.ndarray) -> Any:
        if library == "torch":
            return _torch(a, dtype=_import_torch().bfloat16)
        if library == "jax":
            return _jax(a, BFLOAT16)
        if library == "memmap":
            return _memmap(a.astype(BFLOAT16), tmp_path)
        return (_read_only if library == "read-only" else np.array)(a.astype(BFLOAT16))

    struct, x = PLAIN.make(HOST), make(X)
    out = forward(HOST, struct, x, dtype=BFLOAT16)
    assert out.dtype == BFLOAT16
    assert_close(out, SUM)
    assert_close(backward(HOST, struct, make(G), x, dtype=BFLOAT16).x, SUM_DX)


def test_r28_bfloat16_torch_output() -> None:
    torch = _import_torch()
    out = torch.full((4, 2), torch.nan, dtype=torch.bfloat16)
    agg_hg_basis_n2n_post_fwd(out, _torch(X, dtype=torch.bfloat16), None, PLAIN.make(HOST))
    assert_close(out.float().numpy(), SUM)


def test_r28_bfloat16_on_the_device(device: Any) -> None:
    x, g = (device.array(a.astype(BFLOAT16)) for a in (X, G))
    struct = PLAIN.make(device)
    assert_close(forward(device, struct, x), SUM)
    assert_close(backward(device, struct, g, x).x, SUM_DX)


# ---- R28: what is no array


class Raises:
    """An exporter that fails in its own way."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __dlpack__(self, **_: Any) -> Any:
        raise self.error


class Gives:
    """An exporter whose capsule is something else."""

    def __init__(self, given: Any) -> None:
        self.given = given

    def __dlpack__(self, **_: Any) -> Any:
        return self.given


class Interface:
    """A CUDA array interface as it should not be."""

    def __init__(self, **interface: Any) -> None:
        self.__cuda_array_interface__ = interface


def _consumed() -> Gives:
    exporter = Gives(X.__dlpack__())
    np.from_dlpack(_WithDevice(exporter))
    return exporter


class _WithDevice(Gives):
    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __dlpack__(self, **_: Any) -> Any:
        return self.given.given


NOT_ARRAYS: dict[str, Any] = {
    "object": object(),
    "list of lists": X.tolist(),
    "str": "features",
    "number": 1.5,
    "class of arrays": np.ndarray,
    "capsule": X.__dlpack__(),
    "consumed capsule": _consumed(),
    "no capsule": Gives(None),
    "DLPack that is no method": type("Odd", (), {"__dlpack__": 3})(),
    "complex128": X.astype(complex),
    "objects": X.astype(object),
    "text": np.array([["a", "b"]] * 4),
    "records": np.zeros((4, 2), [("value", "f8")]),
    "other byte order": X.astype(X.dtype.newbyteorder()),
    "datetime64": np.zeros((4, 2), "datetime64[s]"),
    **{
        f"raises {type(e).__name__}": Raises(e)
        for e in (
            BufferError("no"),
            TypeError("no"),
            RuntimeError("no"),
            KeyError("no"),
            AttributeError("no"),
            NotImplementedError("no"),
            AssertionError(),
        )
    },
    "empty interface": Interface(),
    "interface without shape": Interface(typestr="<f8", data=(0, False)),
    "interface without type": Interface(shape=(4, 2), data=(0, False)),
    "interface with a text": Interface(shape="ab", typestr="<f8", data=(0, False)),
    "interface with few strides": Interface(
        shape=(4, 2), typestr="<f8", data=(0, False), strides=(8,)
    ),
}


@pytest.mark.parametrize("kind", NOT_ARRAYS)
def test_r28_what_is_no_array_is_named(device: Any, kind: str) -> None:
    struct, out = PLAIN.make(device), device.poisoned((4, 2), np.float64)
    where = "agg_hg_basis_n2n_post_fwd: `input_embedding` has "
    with pytest.raises(TypeError, match=f"{where}.*, expected "):
        agg_hg_basis_n2n_post_fwd(out, NOT_ARRAYS[kind], None, struct)
    good = device.array(X)
    with pytest.raises(TypeError, match=r"`output_embedding` has .*, expected "):
        agg_hg_basis_n2n_post_fwd(NOT_ARRAYS[kind], good, None, struct)
    assert np.isnan(device.numpy(out)).all()
    agg_hg_basis_n2n_post_fwd(out, good, None, struct)
    assert_close(device.numpy(out), SUM)


def test_r28_complex128_of_other_libraries(device: Any) -> None:
    x = array_module(device).asarray(device.array(X.astype(complex)))
    with pytest.raises(TypeError, match="`input_embedding` has dtype complex128, expected float16"):
        agg_hg_basis_n2n_post_fwd(device.poisoned((4, 2), np.float64), x, None, PLAIN.make(device))


def test_r28_sparse_torch_tensor_is_named() -> None:
    x = _torch(X).to_sparse()
    with pytest.raises(TypeError, match=r"`input_embedding` has .*, expected"):
        agg_hg_basis_n2n_post_fwd(HOST.poisoned((4, 2), float), x, None, PLAIN.make(HOST))
