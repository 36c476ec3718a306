"""Steps along the gradient towards a maximum."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from edgegrad.errors import wrong_value
from edgegrad.graph.make import count
from edgegrad.train.progress import progress
from edgegrad.transforms.gradient import value_and_gradient
from edgegrad.transforms.trees import filled, leaves

_MOST_STEPS = 2**40


@dataclass
class Ascent:
    """Where the steps led: `x`, and the values before every step and after the last."""

    x: Any
    values: list[float] = field(default_factory=list)

    @property
    def value(self) -> float:
        """The value at `x`."""
        return self.values[-1]


def ascend(
    function: Callable[..., Any],
    x0: Any,
    *args: Any,
    steps: int,
    step_size: float | Callable[[int], float],
    callback: Callable[[int, Any, float], None] | None = None,
    backend: str = "auto",
    automove: bool = True,
    **keywords: Any,
) -> Ascent:
    """Add the gradient to the first argument of a function, again and again.

    Parameters
    ----------
    function : callable
        Returns a real value of shape (). To descend, give its negative.
    x0 : array, or dicts and lists of arrays
        Where to begin; it is not changed.
    *args, **keywords
        The other arguments of `function`, held fixed.
    steps : int
        How many.
    step_size : float or callable
        What the gradient is multiplied with; a callable gets the number of the step, from 0 on.
    callback : callable or None
        Called before every step with its number, x and the value.
    backend, automove
        As in `gradient`.

    Returns
    -------
    Ascent
        ``x`` after the last step, ``values`` before every step and after the last, and ``value``.

    Notes
    -----
    A progress bar goes to stderr if that is a terminal and the package rich is there. Nothing looks
    after the size of steps: a value that is not finite is a ValueError that names its step.
    """
    where = "ascend"
    steps = count(where, "steps", steps, _MOST_STEPS)
    derive = value_and_gradient(function, backend=backend, automove=automove)
    found = Ascent(x0)
    with progress(steps, where, "steps") as advance:
        for i in range(steps + 1):
            value, slope = derive(found.x, *args, **keywords)
            found.values.append(_finite(where, i, float(value)))
            if i == steps:
                break
            if callback is not None:
                callback(i, found.x, found.value)
            size = step_size(i) if callable(step_size) else step_size
            moved = [x + size * g for x, g in zip(leaves(found.x), leaves(slope), strict=True)]
            found.x = filled(found.x, iter(moved))
            advance(f"value {found.value:.6g}", 1)
    return found


def _finite(where: str, step: int, value: float) -> float:
    if value - value != 0:
        expected = "a finite one; a smaller step_size may help"
        raise wrong_value(where, "function", f"the value {value} after {step} steps", expected)
    return value
