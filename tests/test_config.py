"""Versions, threads, instruction sets, and what an import costs."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
import types
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import edgegrad
from edgegrad import _host, config
from edgegrad.backends import cuda


def in_a_process(code: str, **environment: str) -> str:
    """What a fresh interpreter prints."""
    env = {**os.environ, **environment}
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], env=env, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


def test_version() -> None:
    assert edgegrad.__version__ == importlib.metadata.version("edgegrad")


def test_public_names() -> None:
    assert len(set(edgegrad.__all__)) == len(edgegrad.__all__)
    for name in edgegrad.__all__:
        assert getattr(edgegrad, name).__doc__, name


def test_an_import_brings_numpy_alone() -> None:
    code = """
import sys, edgegrad
optional = {"cupy", "torch", "jax", "scipy", "matplotlib", "rich", "countryinfo", "ml_dtypes"}
print(sorted(optional & {name.partition(".")[0] for name in sys.modules}))
"""
    assert in_a_process(code) == "[]"


@pytest.fixture
def threads() -> Iterator[None]:
    yield
    edgegrad.set_num_threads(0)


def test_threads(threads: None) -> None:
    default = _host.num_threads()
    for n in (1, 3):
        edgegrad.set_num_threads(n)
        assert _host.num_threads() == n
    edgegrad.set_num_threads(np.int64(2))
    assert _host.num_threads() == 2
    edgegrad.set_num_threads(0)
    assert _host.num_threads() == default


def test_threads_by_environment() -> None:
    code = "import edgegrad; print(edgegrad._host.num_threads())"
    assert in_a_process(code, OMP_NUM_THREADS="3") == "3"


@pytest.mark.parametrize("bad", [-1, 1025, 2**40, 1.0, "2", None, True], ids=repr)
def test_bad_numbers_of_threads(bad: Any) -> None:
    before = _host.num_threads()
    error = ValueError if type(bad) is int else TypeError
    with pytest.raises(error, match="^set_num_threads: `n` has .*, expected ") as caught:
        edgegrad.set_num_threads(bad)
    assert isinstance(caught.value, edgegrad.ArgumentError)
    assert _host.num_threads() == before


ISAS = ("baseline", "avx2", "avx512")
WORKED_EXAMPLE = """
import numpy as np, edgegrad
from edgegrad.operators import agg_hg_basis_n2n_post_fwd as fwd, agg_hg_basis_n2n_post_bwd as bwd
rng = np.random.default_rng(0)
graph = edgegrad.from_coo(
    rng.integers(0, 40, 900), rng.integers(0, 40, 900), 40,
    edge_types=rng.integers(0, 3, 900).astype("int32"), n_edge_types=3)
x, w = rng.standard_normal((40, 37)), rng.standard_normal((3, 5))
y, dx, dw = np.empty((40, 185)), np.empty_like(x), np.empty_like(w)
fwd(y, x, w, graph, norm_by_out_degree=True)
bwd(dx, dw, y, x, w, graph, norm_by_out_degree=True)
print(edgegrad._host.isa(), *(float(abs(a).sum()) for a in (y, dx, dw)))
"""


def test_instruction_sets_agree() -> None:
    """EDGEGRAD_ISA lowers the choice, and never asks for what the processor lacks."""
    best = _host.isa() if "EDGEGRAD_ISA" not in os.environ else ISAS[-1]
    results = {}
    for isa in ISAS:
        used, *values = in_a_process(WORKED_EXAMPLE, EDGEGRAD_ISA=isa).split()
        assert ISAS.index(used) == min(ISAS.index(isa), ISAS.index(best))
        results[isa] = [float(v) for v in values]
    for values in results.values():
        np.testing.assert_allclose(values, results["baseline"], rtol=1e-13)


def test_show_config(capsys: pytest.CaptureFixture[str]) -> None:
    edgegrad.show_config()
    lines = capsys.readouterr().out.splitlines()
    facts = dict(line.split(maxsplit=1) for line in lines)
    assert facts["edgegrad"] == edgegrad.__version__
    assert facts["numpy"] == np.__version__
    assert facts["host"].startswith(f"{_host.isa()}, {_host.num_threads()} threads")
    assert facts["kernels"] == str(cuda.KERNELS)
    assert {"python", "cache", "scipy", "matplotlib", "rich", "countryinfo"} <= facts.keys()


def test_show_config_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def no_cupy() -> Any:
        raise edgegrad.BackendError("pip install 'edgegrad[cuda12]'")

    monkeypatch.setattr(cuda, "cupy", no_cupy)
    monkeypatch.setattr(config.importlib.util, "find_spec", lambda _: None)
    monkeypatch.setenv("CUPY_CACHE_DIR", "/somewhere")
    edgegrad.show_config()
    text = capsys.readouterr().out
    assert "cuda         missing: pip install 'edgegrad[cuda12]'" in text
    assert "cache        /somewhere" in text
    assert text.count("missing (") == len(config._OPTIONAL)
    assert "pip install 'edgegrad[demo]'" in text


def test_show_config_lists_gpus(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    properties = {"name": b"NVIDIA H200", "major": 9, "minor": 0, "totalGlobalMem": 139 << 30}
    runtime = types.SimpleNamespace(
        getDeviceCount=lambda: 2, getDeviceProperties=lambda _: properties
    )
    fake = types.SimpleNamespace(__version__="13.6.0", cuda=types.SimpleNamespace(runtime=runtime))
    monkeypatch.setattr(cuda, "cupy", lambda: fake)
    edgegrad.show_config()
    text = capsys.readouterr().out
    assert "cupy         13.6.0" in text
    assert "cuda:1       NVIDIA H200, sm_90, 139 GiB" in text
