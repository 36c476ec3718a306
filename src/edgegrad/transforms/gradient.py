"""The transforms: gradient, value_and_gradient, jacobian and hvp."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from edgegrad.errors import wrong_value
from edgegrad.transforms.engines import Pullback
from edgegrad.transforms.problem import Problem, Transform

Function = Callable[..., Any]


def gradient(
    function: Function,
    variables: Any = None,
    *,
    extra_outputs: bool = False,
    backend: str = "auto",
    automove: bool = True,
    signature: Any = None,
    fallback: Sequence[str] = (),
) -> Function:
    """Return the function that computes the gradient of a function of arrays.

    Parameters
    ----------
    function : callable
        Returns a real value of shape ().
    variables : None, name, index, or a sequence of these
        What to differentiate by; None: the first positional argument. Arrays, or dicts and lists
        of arrays, nested at will, of real floating dtypes.
    extra_outputs : bool
        The function returns a list or tuple of two or more. Only the first is differentiated; the
        others come back as they are.
    backend : {"auto", "keep", "numpy", "torch", "jax", "cupy"}
        What differentiates. "auto" and "keep": what the arrays belong to. "numpy" is HIPS
        autograd; "cupy" runs as torch, or else JAX, without a copy.
    automove : bool
        Move arrays that belong to others than the backend; False: they are a TypeError.
    signature : str, list, or None
        As in ``"(a, b, +, k) ~> (loss, aux)"``, where names after + are keyword-only, or
        ``[["a", "b"], ["loss"]]``; None: read from the function.
    fallback : sequence of str
        Backends to take, with a warning, if the one chosen is not installed.

    Returns
    -------
    callable
        Takes the arguments of `function`. Returns the direction of steepest increase: of the
        structure, shapes, dtypes and devices of the variable, or a tuple of these for several; with
        extra outputs, a list of it and of them. A variable that is not used has zeros.

    Raises
    ------
    ArgumentError
        If an argument is not as described; the result raises it if the value is not.
    ImportError
        From the result, if the backend is not installed, with the command that installs it.
    """
    where = "gradient"
    shared = _shared(extra_outputs, backend, automove, signature, fallback)
    transform = Transform.of(where, function, variables, **shared)

    def run(problem: Problem) -> Any:
        value, pullback, extras = scalar_vjp(problem)
        found = problem.restored(pullback(problem.engine.ones(value)))
        return [found, *problem.left(extras)] if extra_outputs else found

    return _made(transform, run)


def value_and_gradient(
    function: Function,
    variables: Any = None,
    *,
    extra_outputs: bool = False,
    backend: str = "auto",
    automove: bool = True,
    signature: Any = None,
    fallback: Sequence[str] = (),
) -> Function:
    """Return the function that computes the value of a function, and its gradient.

    Parameters and errors are those of `gradient`. The result returns ``(value, gradient)``, or with
    extra outputs ``[value, gradient, *extras]``.
    """
    where = "value_and_gradient"
    shared = _shared(extra_outputs, backend, automove, signature, fallback)
    transform = Transform.of(where, function, variables, **shared)

    def run(problem: Problem) -> Any:
        value, pullback, extras = scalar_vjp(problem)
        found = problem.restored(pullback(problem.engine.ones(value)))
        value = problem.left(value)
        return [value, found, *problem.left(extras)] if extra_outputs else (value, found)

    return _made(transform, run)


def jacobian(
    function: Function,
    variables: Any = None,
    *,
    extra_outputs: bool = False,
    backend: str = "auto",
    automove: bool = True,
    signature: Any = None,
    fallback: Sequence[str] = (),
) -> Function:
    """Return the function that computes all derivatives of a function whose value has any shape.

    Parameters and errors are those of `gradient`. In the place of every array of the variables the
    result has one whose shape is that of the value followed by the array's.
    """
    where = "jacobian"
    shared = _shared(extra_outputs, backend, automove, signature, fallback)
    transform = Transform.of(where, function, variables, **shared)

    def run(problem: Problem) -> Any:
        value, pullback, extras = _vjp(problem, scalar=False)
        rows = problem.engine.rows(pullback, value)
        pairs = zip(rows, problem.xs, strict=True)
        found = problem.restored([a.reshape((*value.shape, *x.shape)) for a, x in pairs])
        return [found, *problem.left(extras)] if extra_outputs else found

    return _made(transform, run)


def hvp(
    function: Function,
    variables: Any = None,
    *,
    backend: str = "auto",
    automove: bool = True,
    signature: Any = None,
    fallback: Sequence[str] = (),
) -> Function:
    """Return the function that multiplies the matrix of second derivatives with a vector.

    Parameters and errors are those of `gradient`. The result takes the arguments of `function` and
    ``vector``, by keyword, which is nested as the gradient is; so is the product. The matrix is
    never made. An operator without a second derivative raises `DerivativeError`.
    """
    where = "hvp"
    shared = _shared(False, backend, automove, signature, fallback)
    transform = Transform.of(where, function, variables, **shared)
    if "vector" in transform.signature.parameters.parameters:
        raise wrong_value(where, "function", "an argument `vector`", "another name for it")

    def run(problem: Problem, vector: Any) -> Any:
        return problem.restored(product(problem, problem.entered(where, "vector", vector)))

    return _made(transform, run, takes="vector")


def _shared(
    extra_outputs: bool, backend: str, automove: bool, signature: Any, fallback: Sequence[str]
) -> dict[str, Any]:
    return {
        "extra_outputs": extra_outputs,
        "backend": backend,
        "automove": automove,
        "signature": signature,
        "fallback": fallback,
    }


def _vjp(
    problem: Problem, xs: list[Any] | None = None, *, scalar: bool
) -> tuple[Any, Pullback, Any]:
    def function(arrays: list[Any]) -> tuple[Any, Any]:
        value, extras = problem.function(arrays)
        problem.transform.check_value(value, scalar=scalar)
        return value, extras

    return problem.engine.vjp(function, problem.xs if xs is None else xs)


def scalar_vjp(problem: Problem, xs: list[Any] | None = None) -> tuple[Any, Pullback, Any]:
    """Return the value, the function from its gradient to those of `xs`, and the extra outputs."""
    return _vjp(problem, xs, scalar=True)


def slope(problem: Problem, xs: list[Any], vs: list[Any]) -> Any:
    """Return the derivative in a direction, an array for each of `xs`."""
    value, pullback, _ = scalar_vjp(problem, xs)
    found = pullback(problem.engine.ones(value))
    return sum((g * v).sum() for g, v in zip(found, vs, strict=True))


def product(problem: Problem, vs: list[Any]) -> Sequence[Any]:
    """Return the product of the second derivatives with a direction."""
    along, pullback, _ = problem.engine.vjp(lambda xs: (slope(problem, xs, vs), ()), problem.xs)
    return pullback(problem.engine.ones(along))


def _made(transform: Transform, run: Callable[..., Any], takes: str = "") -> Function:
    """Make the function with the signature of the one that is differentiated."""

    def derived(*args: Any, **keywords: Any) -> Any:
        more = ()
        if takes:
            if takes not in keywords:
                raise TypeError(f"{transform.where}: `{takes}` is missing, by keyword")
            more = (keywords.pop(takes),)
        problem = transform.of_call(args, keywords)
        with problem.wide:
            return run(problem, *more)

    name = getattr(transform.function, "__name__", "function")
    derived.__name__ = derived.__qualname__ = f"{transform.where}_of_{name}"
    derived.__doc__ = f"The {transform.where} of `{name}`, whose arguments it takes."
    parameters = transform.signature.parameters
    if takes:
        extra = inspect.Parameter(takes, inspect.Parameter.KEYWORD_ONLY)
        parts = [*parameters.parameters.values()]
        at = len(parts) - any(p.kind is p.VAR_KEYWORD for p in parts)
        parameters = parameters.replace(parameters=[*parts[:at], extra, *parts[at:]])
    derived.__signature__ = parameters  # type: ignore[attr-defined]
    return derived
