"""The frameworks' own checks of derivatives, to second order."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from frameworks import Autograd, Example, Framework, Jax, examples, in_framework

EXAMPLES = [e for e in examples() if e.has_second]


def _one_by_operator() -> list[Example]:
    """The example of every operator that has most arrays."""
    by_name: dict[str, Example] = {}
    for e in EXAMPLES:
        best = by_name.setdefault(e.d.name, e)
        if len(e.variables) > len(best.variables):
            by_name[e.d.name] = e
    return list(by_name.values())


def _id(example: Example) -> str:
    return example.id


@pytest.fixture
def jax() -> Any:
    yield from in_framework("jax")


@pytest.mark.parametrize("example", _one_by_operator(), ids=_id)
def test_jax(example: Example, jax: Jax) -> None:
    check_grads = importlib.import_module("jax.test_util").check_grads
    function = jax.engine.jit(example.function(jax))
    arrays = tuple(jax.array(a) for a in example.variables.values())
    check_grads(function, arrays, order=2, modes=["rev"])


@pytest.mark.parametrize("example", EXAMPLES, ids=_id)
def test_autograd(example: Example) -> None:
    framework: Framework = Autograd()
    check_grads = importlib.import_module("autograd.test_util").check_grads
    function = example.function(framework)
    check_grads(function, modes=["rev"], order=2)(*example.variables.values())
