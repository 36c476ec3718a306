"""Fixtures: the device a test runs on, feature and index dtypes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import simt
from devices import Cuda, Host, Simt, missing_gpu
from tolerances import FLOATS


@pytest.fixture(params=["host", "simt", "cuda"])
def device(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Run the test on the host, in the CPU run of the CUDA path, and on a GPU if there is one."""
    if request.param == "host":
        yield Host()
    elif request.param == "simt":
        with pytest.MonkeyPatch.context() as monkeypatch:
            device = Simt()
            device.launches = simt.install(monkeypatch)
            yield device
    else:
        if reason := missing_gpu():
            pytest.skip(f"no GPU: {reason}")
        yield Cuda()


@pytest.fixture(params=FLOATS, ids=str)
def T(request: pytest.FixtureRequest) -> np.dtype:
    return request.param


@pytest.fixture(params=[np.int32, np.int64], ids=["int32", "int64"])
def IdxT(request: pytest.FixtureRequest) -> Any:
    return request.param
