from __future__ import annotations

import numpy as np
import pytest

from edgegrad.train.device import Device
from edgegrad.train.dropout import Dropout


def dropout(p: float, seed: int = 0, dtype: str = "float32") -> Dropout:
    return Dropout(p, np.random.default_rng(seed), Device("cpu", dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_factors_are_zero_or_keep_the_mean(dtype: str) -> None:
    factors = dropout(0.75, dtype=dtype).factors(100, 400)
    assert (factors.shape, factors.dtype) == ((100, 400), np.dtype(dtype))
    assert set(np.unique(factors).tolist()) == {0.0, 4.0}
    # The share that is kept has a standard deviation of 0.0022; here are four of them.
    assert abs((factors > 0).mean() - 0.25) < 0.0088


def test_draws_go_by_seed() -> None:
    first, again, other = dropout(0.5), dropout(0.5), dropout(0.5, seed=1)
    draws = [(d.factors(64).tolist(), d.seed(), d.factors(64).tolist()) for d in (first, again)]
    assert draws[0] == draws[1]
    assert draws[0][0] != draws[0][2]
    assert draws[0][0] != other.factors(64).tolist()
    assert draws[0][1] != other.seed()
