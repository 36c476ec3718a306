"""A function with its variables picked out, as an engine differentiates it."""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np

from edgegrad.errors import wrong_option, wrong_type, wrong_value
from edgegrad.operator import FLOATS
from edgegrad.transforms.engines import BACKENDS, NAMES, Engine, engine, framework_of
from edgegrad.transforms.signature import Signature, Variable, is_one
from edgegrad.transforms.trees import filled, leaves, mapped


@dataclass(frozen=True)
class Problem:
    """A function of a list of arrays, the engine's own, that stand for the variables of a call."""

    transform: Transform
    engine: Engine
    function: Callable[[list[Any]], tuple[Any, Any]]
    xs: list[Any]
    homes: list[str]  # framework of every array as the caller gave it
    nests: list[Any]  # the caller's value of every variable
    wide: AbstractContextManager[Any]

    def restored(self, arrays: Sequence[Any]) -> Any:
        """Return one array for each of `xs` in the caller's frameworks, nested as the variables."""
        back = (self.engine.leave(a, home) for a, home in zip(arrays, self.homes, strict=True))
        made = [filled(nest, back) for nest in self.nests]
        return made[0] if self.transform.single else tuple(made)

    def left(self, tree: Any) -> Any:
        """Return outputs with their arrays in the caller's framework."""
        own, home = self.engine.name, self.homes[0]
        if home == own:
            return tree
        return mapped(lambda a: self.engine.leave(a, home) if framework_of(a) == own else a, tree)

    def entered(self, where: str, name: str, given: Any) -> list[Any]:
        """Return arrays of the shapes of `xs`, nested as the variables, as the engine's own."""
        found = [self.engine.enter(a, self.xs[0]) for a in leaves(given)]
        shapes, expected = ([tuple(a.shape) for a in arrays] for arrays in (found, self.xs))
        if shapes != expected:
            raise wrong_value(
                where, name, f"shapes {shapes}", f"{expected}, those of the variables"
            )
        return found


@dataclass(frozen=True)
class Transform:
    """What is to be differentiated, and how: the arguments that all transforms share."""

    where: str
    function: Callable[..., Any]
    signature: Signature
    variables: tuple[Variable, ...]
    single: bool
    extra_outputs: bool
    backend: str
    automove: bool
    fallback: tuple[str, ...]

    @classmethod
    def of(
        cls,
        where: str,
        function: Callable[..., Any],
        variables: Any,
        *,
        extra_outputs: bool = False,
        backend: str = "auto",
        automove: bool = True,
        signature: Any = None,
        fallback: Sequence[str] = (),
    ) -> Transform:
        """Check the arguments of a transform."""
        known = Signature.of(where, function, signature)
        if backend not in BACKENDS:
            raise wrong_option(where, "backend", backend, " or ".join(map(repr, BACKENDS)))
        if known.outputs and (len(known.outputs) > 1) != extra_outputs:
            expected = "two or more with extra_outputs, one without"
            has = f"{len(known.outputs)} outputs"
            raise wrong_value(where, "signature", has, expected)
        return cls(
            where,
            function,
            known,
            known.variables(where, variables),
            is_one(variables),
            bool(extra_outputs),
            backend,
            bool(automove),
            (fallback,) if isinstance(fallback, str) else tuple(fallback),
        )

    def of_call(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> Problem:
        """Pick the variables out of a call's arguments, in the arrays of one engine."""
        bound = self.signature.bind(self.where, args, keywords)
        nests = [self._value(bound, v) for v in self.variables]
        given = [leaf for nest in nests for leaf in leaves(nest)]
        for variable, nest in zip(self.variables, nests, strict=True):
            self._check_variable(variable, nest)
        arrays = [a for a in leaves((dict(bound.arguments), given)) if _is_array(a)]
        chosen = engine(
            self.where, self._engine_name({framework_of(a) for a in arrays}), self.fallback
        )
        own = [a for a in arrays if framework_of(a) == chosen.name]
        others = [a for a in (*arrays, *given) if framework_of(a) != chosen.name]
        if not self.automove and (moved := {framework_of(a) for a in others}):
            has = f"arrays of {' and '.join(sorted(moved))}"
            raise wrong_type(self.where, "automove", f"the value False beside {has}", chosen.name)
        like = own[0] if own else None
        with chosen.wide(others):
            for name, value in bound.arguments.items():
                bound.arguments[name] = mapped(
                    lambda a: chosen.enter(a, like) if _is_array(a) else a, value
                )
            xs = [chosen.enter(a, like) for a in given]
        homes = [framework_of(a) for a in given]
        call = self._function(bound, nests)
        return Problem(self, chosen, call, xs, homes, nests, chosen.wide(others))

    def _value(self, bound: inspect.BoundArguments, variable: Variable) -> Any:
        name, place = variable
        value = bound.arguments[name]
        if place is None:
            return value
        if place >= len(value):
            has = f"an index for argument {place} of `{name}`"
            raise wrong_value(self.where, "variables", has, f"less than {len(value)}, as given")
        return value[place]

    def _check_variable(self, variable: Variable, nest: Any) -> None:
        name = variable[0]
        for leaf in leaves(nest):
            if not framework_of(leaf):
                has = f"type {type(leaf).__name__}"
                expected = "an array of real floating numbers, or dicts and lists of them"
                raise wrong_type(self.where, name, has, expected)
            if (dtype := _dtype(leaf)) not in FLOATS:
                raise wrong_type(self.where, name, f"dtype {dtype}", " or ".join(FLOATS))
        if not any(True for _ in leaves(nest)):
            raise wrong_value(self.where, name, "no arrays", "at least one to differentiate by")

    def _engine_name(self, found: set[str]) -> str:
        if self.backend in NAMES:
            return self.backend
        theirs = sorted(found - {"numpy"})
        if len(theirs) > 1 and self.backend != "cupy":
            has = f"arrays of {' and '.join(theirs)} together"
            raise wrong_type(self.where, "backend", has, f"one of {', '.join(map(repr, NAMES))}")
        name = "cupy" if self.backend == "cupy" else (theirs or ["numpy"])[0]
        if name != "cupy":
            return name
        return next((n for n in ("torch", "jax") if importlib.util.find_spec(n)), "torch")

    def _function(
        self, bound: inspect.BoundArguments, nests: list[Any]
    ) -> Callable[[list[Any]], tuple[Any, Any]]:
        def call(xs: list[Any]) -> tuple[Any, Any]:
            arrays = iter(xs)
            arguments = dict(bound.arguments)
            for (name, place), nest in zip(self.variables, nests, strict=True):
                value = filled(nest, arrays)
                if place is not None:
                    rest = list(arguments[name])
                    rest[place] = value
                    value = tuple(rest)
                arguments[name] = value
            made = inspect.BoundArguments(self.signature.parameters, arguments)  # type: ignore
            return self._split(self.function(*made.args, **made.kwargs))

        return call

    def _split(self, made: Any) -> tuple[Any, list[Any]]:
        """Return the value to differentiate, and the extra outputs."""
        several = isinstance(made, list | tuple)
        if self.extra_outputs:
            if not several or len(made) < 2:
                has = f"a result of {len(made)}" if several else f"type {type(made).__name__}"
                expected = "a list or tuple of two or more, as extra_outputs says"
                raise wrong_value(self.where, "function", has, expected)
            return made[0], list(made[1:])
        if several or isinstance(made, dict):
            has = f"a result of type {type(made).__name__}"
            raise wrong_value(self.where, "function", has, "one value, or extra_outputs=True")
        return made, []

    def check_value(self, value: Any, *, scalar: bool) -> None:
        """Raise unless the value is real, and of shape () if it has to be a scalar."""
        dtype = _dtype(value)
        if dtype not in FLOATS:
            expected = "a real floating number"
            raise wrong_value(self.where, "function", f"a value of dtype {dtype}", expected)
        shape = tuple(getattr(value, "shape", ()))
        if scalar and shape != ():
            expected = "shape (); `jacobian` differentiates values of any shape"
            raise wrong_value(self.where, "function", f"a value of shape {shape}", expected)


def _is_array(value: Any) -> bool:
    return bool(framework_of(value)) and not isinstance(value, float | np.generic)


def _dtype(value: Any) -> str:
    if isinstance(value, float) and not isinstance(value, np.generic):
        return "float64"
    return str(getattr(value, "dtype", type(value).__name__)).removeprefix("torch.")
