"""PyTorch, JAX and HIPS autograd give the same derivatives, or the same error."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import edgegrad
from frameworks import FRAMEWORKS, Example, Framework, examples, in_framework

EXAMPLES = list(examples())
SECOND = [e for e in EXAMPLES if e.has_second]
FIRST_ONLY = [e for e in EXAMPLES if not e.has_second]


def _id(example: Example) -> str:
    return example.id


def _assert_equal(got: Any, expected: Any) -> None:
    for a, b in zip(got, expected, strict=True):
        scale = max(1.0, float(np.abs(b).max(initial=0)))
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12 * scale)


@pytest.mark.parametrize("example", EXAMPLES, ids=_id)
def test_frameworks_agree(example: Example) -> None:
    order, found = 1 + example.has_second, {}
    for name in FRAMEWORKS:
        with contextmanager(in_framework)(name) as framework:
            found[name] = framework.derivatives(example, order)
    assert len(list(found["torch"])) == len(list(found["jax"]))
    _assert_equal(found["jax"], found["torch"])
    _assert_equal(found["autograd"], found["torch"])


@pytest.mark.parametrize("example", FIRST_ONLY, ids=_id)
def test_missing_second_derivative_raises(example: Example, framework: Framework) -> None:
    with pytest.raises(edgegrad.DerivativeError, match="there is no second derivative"):
        framework.derivatives(example, 2)
