"""What is raised: built-in classes that are ours as well, one line, one form of message."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import devices
import edgegrad
import graphs
from edgegrad import errors
from edgegrad.backends import cuda

BUILDERS = [
    (errors.wrong_type, (TypeError,), "f: `a` has dtype int8, expected float32"),
    (errors.wrong_value, (ValueError,), "f: `a` has dtype int8, expected float32"),
    (errors.wrong_index, (IndexError, ValueError), "f: `a` has dtype int8, expected float32"),
    (errors.wrong_option, (ValueError,), "f: `a` is 'dtype int8', expected float32"),
]


@pytest.mark.parametrize(("build", "classes", "text"), BUILDERS)
def test_classes_and_messages(build: Any, classes: tuple[type, ...], text: str) -> None:
    error = build("f", "a", "dtype int8", "float32")
    assert str(error) == text
    assert isinstance(error, edgegrad.ArgumentError)
    for cls in (TypeError, ValueError, IndexError):
        assert isinstance(error, cls) == (cls in classes)
    again = pickle.loads(pickle.dumps(error))  # as between processes
    assert (type(again), str(again)) == (type(error), text)


def test_backend_errors_are_no_argument_errors() -> None:
    assert issubclass(edgegrad.BackendError, RuntimeError)
    assert not issubclass(edgegrad.BackendError, edgegrad.ArgumentError)


class _NoCupy:
    def find_spec(self, name: str, *_: Any) -> None:
        if name.partition(".")[0] == "cupy":
            raise ModuleNotFoundError("No module named 'cupy'")


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """`cuda.cupy` without what it found before."""
    import sys

    for name in [m for m in sys.modules if m.partition(".")[0] == "cupy"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(cuda, "cupy", cuda.cupy.__wrapped__)
    return monkeypatch


def test_missing_cupy(fresh: pytest.MonkeyPatch) -> None:
    import sys

    fresh.setattr(sys, "meta_path", [_NoCupy(), *sys.meta_path])
    message = r"CuPy cannot be imported .*: pip install 'edgegrad\[cuda12\]' or"
    with pytest.raises(edgegrad.BackendError, match=message) as caught:
        graphs.G0.make(devices.Host()).to("cuda")
    assert "\n" not in str(caught.value)
    assert caught.value.__suppress_context__


def _fake_cupy(monkeypatch: pytest.MonkeyPatch, count: Any) -> None:
    import sys
    import types

    module = types.ModuleType("cupy")
    module.cuda = types.SimpleNamespace(runtime=types.SimpleNamespace(getDeviceCount=count))
    monkeypatch.setitem(sys.modules, "cupy", module)


def test_missing_driver(fresh: pytest.MonkeyPatch) -> None:
    def no_driver() -> int:
        raise RuntimeError("cudaErrorInsufficientDriver")

    _fake_cupy(fresh, no_driver)
    with pytest.raises(edgegrad.BackendError, match="no CUDA driver answers .*: install"):
        cuda.cupy()
    _fake_cupy(fresh, lambda: 0)
    with pytest.raises(edgegrad.BackendError, match="reports no GPU: use host arrays"):
        cuda.cupy()


def test_kernels_that_do_not_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    import simt

    simt.install(monkeypatch)
    source, _ = edgegrad.operators.kernels()[0]
    launch = cuda.Launch(source, "edgegrad::no_such_kernel<float>", (1,), (32,), ())
    with pytest.raises(edgegrad.BackendError, match=f"{source}: edgegrad::no_such_kernel<float> "):
        cuda.launch(launch, "cuda:0")


OPTIONS = [
    ({"weights_combination": None}, "`grad_weights` has an array, expected None, since "),
    ({"concat_own": True}, "`concat_own` is True, expected False, since a bipartite graph"),
]


@pytest.mark.parametrize(("changed", "message"), OPTIONS)
def test_options_of_the_basis_aggregation(changed: dict[str, Any], message: str) -> None:
    data = graphs.make("bipartite")
    given: dict[str, Any] = {
        "grad_input": np.zeros((7, 2)),
        "grad_weights": np.zeros((3, 2)),
        "grad_output": np.zeros((19, 4)),
        "input_embedding": np.zeros((7, 2)),
        "weights_combination": np.zeros((3, 2)),
        "graph": data.make(devices.Host()),
        **changed,
    }
    with pytest.raises(ValueError, match=f"^agg_hg_basis_n2n_post_bwd: {message}") as caught:
        edgegrad.operators.agg_hg_basis_n2n_post_bwd(**given)
    assert isinstance(caught.value, edgegrad.ArgumentError)


def test_no_bases() -> None:
    data, where = graphs.make("chain"), "`weights_combination` has n_bases = 0, expected"
    x, none, out = np.zeros((17, 2)), np.zeros((3, 0)), np.zeros((17, 0))
    graph = data.make(devices.Host())
    with pytest.raises(ValueError, match=where):
        edgegrad.operators.agg_hg_basis_n2n_post_fwd(out, x, none, graph)
    with pytest.raises(ValueError, match=where):
        edgegrad.operators.agg_hg_basis_n2n_post_bwd(x * 1, None, out, x, none, graph)
