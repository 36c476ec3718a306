"""Derivatives against differences of values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from edgegrad.transforms.gradient import product, slope
from edgegrad.transforms.problem import Problem, Transform


def check_gradient(
    function: Callable[..., Any],
    *args: Any,
    variables: Any = None,
    order: int = 1,
    step: float = 1e-5,
    tolerance: float = 1e-6,
    seed: int = 0,
    **options: Any,
) -> float:
    """Compare the gradient of a function with central differences in a random direction.

    Parameters
    ----------
    function, variables
        As in `gradient`.
    *args
        Arguments of the function, in float64: differences in narrower types say little.
    order : int
        1; 2 compares second derivatives in that direction, too.
    step : float
        Length of the step to either side, relative to the direction's.
    tolerance : float
        Largest error that passes, relative to the larger of 1 and the derivative.
    seed : int
        Of the direction.
    **options
        Options of `gradient`.

    Returns
    -------
    float
        The largest error.

    Raises
    ------
    AssertionError
        If an error is larger than `tolerance`.
    """
    problem = Transform.of("check_gradient", function, variables, **options).of_call(args, {})
    with problem.wide:
        vs, worst = _direction(problem, seed), 0.0
        compared = [("gradient", slope, _value)]
        if order == 2:
            compared.append(("second derivative", _curvature, slope))
        for name, of, integral in compared:
            ahead, behind = (
                float(integral(problem, _moved(problem.xs, vs, s), vs)) for s in (step, -step)
            )
            got, expected = float(of(problem, problem.xs, vs)), (ahead - behind) / (2 * step)
            error = abs(got - expected) / max(1.0, abs(expected))
            if not error <= tolerance:
                raise AssertionError(
                    f"check_gradient: the {name} in a random direction is {got:.12g}, differences "
                    f"give {expected:.12g}: an error of {error:.2g}, expected {tolerance:.2g}"
                )
            worst = max(worst, error)
    return worst


def _direction(problem: Problem, seed: int) -> list[Any]:
    rng, enter = np.random.default_rng(seed), problem.engine.enter
    return [enter(rng.standard_normal(tuple(x.shape)), x) for x in problem.xs]


def _moved(xs: list[Any], vs: list[Any], step: float) -> list[Any]:
    return [x + step * v for x, v in zip(xs, vs, strict=True)]


def _value(problem: Problem, xs: list[Any], vs: list[Any]) -> Any:
    del vs
    return problem.function(xs)[0]


def _curvature(problem: Problem, xs: list[Any], vs: list[Any]) -> Any:
    del xs  # those of the problem
    found = product(problem, vs)
    return sum((h * v).sum() for h, v in zip(found, vs, strict=True))
