"""The replacement of CuPy in a backend."""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import simt

BACKEND = "backend_under_test"
CODE = 'extern "C" __global__ void set(int* to, int value) { to[threadIdx.x] = value; }'


@pytest.fixture
def backend() -> Iterator[Any]:
    """A module with the shape of edgegrad.backends.cuda, whose CuPy cannot be used."""
    module = types.ModuleType(BACKEND)
    module.__dict__.update(CODE=CODE, functools=functools)
    exec(
        "def cupy():\n    raise ImportError('no CuPy here')\n"
        "@functools.cache\n"
        "def load():\n    return cupy().RawModule(code=CODE).get_function('set')\n",
        module.__dict__,
    )
    sys.modules[BACKEND] = module
    yield module
    del sys.modules[BACKEND]


def test_install(backend: Any) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        launches = simt.install(monkeypatch, BACKEND)
        assert launches == []
        cp = backend.cupy()
        y = cp.empty(4, np.int32)
        backend.load()((1,), (4,), (y.data.ptr, np.int32(9)))
        assert backend.load() is backend.load()
        np.testing.assert_array_equal(y.get(), [9, 9, 9, 9])
        assert [r.kernel for r in launches] == ["set"]
    with pytest.raises(ImportError, match="no CuPy here"):
        backend.load()  # the runner's kernel is not in the cache of the real backend


def test_next_test_starts_without_launches(backend: Any) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        backend_launches = simt.install(monkeypatch, BACKEND)
        backend.load()((1,), (1,), (backend.cupy().empty(1, np.int32), np.int32(1)))
        assert len(backend_launches) == 1
        assert simt.install(monkeypatch, BACKEND) == []


def test_settings_are_restored() -> None:
    before = simt.settings.settings()

    def fail_inside() -> None:
        with simt.config(check=False, seeds=(3,)):
            assert simt.settings.settings().seeds == (3,)
            raise KeyError

    with pytest.raises(KeyError):
        fail_inside()
    assert simt.settings.settings() is before
    with pytest.raises(TypeError, match="no_such_setting"), simt.config(no_such_setting=1):
        pass
