"""The frameworks with one face, and every operator with every class of options to call in them."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import graphs
import reference
from devices import Host
from edgegrad.differentiation import DIFFERENTIABLE, Derivatives

Arrays = Sequence[Any]
Function = Callable[..., Any]


@dataclass(frozen=True, eq=False)
class Example:
    """A call of a front end's function; arrays are float64 and by edge id."""

    d: Derivatives
    graph: Any
    options: Mapping[str, Any]
    variables: Mapping[str, np.ndarray]
    fixed: Mapping[str, np.ndarray]
    n_outputs: tuple[int, ...]

    @property
    def id(self) -> str:
        """What is called."""
        chosen = [f"{k}={v}" for k, v in self.options.items() if v]
        return "-".join([self.d.name, *chosen, *self.fixed, *list(self.variables)[1:]])

    @property
    def has_second(self) -> bool:
        """Whether the operator has a second derivative with these options."""
        options = {**self.d.defaults, **self.d.normalised(self.options)}
        return bool(self.d.terms(options) or self.d.rule(options))

    def function(self, framework: Framework) -> Function:
        """The function of the variables alone."""
        fixed = {k: framework.array(a) for k, a in self.fixed.items()}
        of_operator = getattr(framework.operators, self.d.name)
        on = {"graph": self.graph} if self.d.op.graphs else {}

        def call(*arrays: Any) -> Any:
            given = dict(zip(self.variables, arrays, strict=True))
            none = {a.name: None for a in self.d.op.inputs if a.name not in {*given, *fixed}}
            return of_operator(**given, **fixed, **none, **on, **self.options)

        return call


def examples() -> Iterator[Example]:
    """Every operator, every class of options, with and without optional arrays; on one graph."""
    seen: dict[str, Example] = {}
    for example in _all():
        seen.setdefault(example.id, example)  # the others have more axes
    yield from seen.values()


def _all() -> Iterator[Example]:
    data, rng = graphs.make("multi_edge"), np.random.default_rng(3)
    for d in DIFFERENTIABLE:
        for case in reference.cases_of(d.op, "fwd", data):
            reads = reference.rounded(case, np.dtype(np.float64))
            given = {k: _by_id(d, k, a, data) for k, a in reads.items() if a is not None}
            names = [a.name for a in d.variables if a.name in given]
            output = case.oracle(reads)[d.op.outputs[0].name]
            sizes = {name for sizes in d.op.sizes.values() for name in sizes}
            yield Example(
                d,
                data.make(Host(), np.int32, case.kind),
                {k: v for k, v in case.options.items() if k not in sizes},
                # Numbers of few digits meet the kinks of activations, where differences mislead.
                {k: given[k] + 0.01 * rng.standard_normal(given[k].shape) for k in names},
                {k: a for k, a in given.items() if k not in names},
                output.value.shape,
            )


def _by_id(d: Derivatives, name: str, a: np.ndarray, data: graphs.GraphData) -> np.ndarray:
    if name not in d.by_position:
        return a
    found = np.empty_like(a)
    found[data.edge_ids] = a
    return found


@dataclass
class Derived:
    """A value, its gradients for a cotangent, and those of the gradients in a direction."""

    value: np.ndarray
    first: list[np.ndarray]
    second: list[np.ndarray]

    def __iter__(self) -> Iterator[np.ndarray]:
        return iter((self.value, *self.first, *self.second))


class Framework:
    """One framework; made when it is installed."""

    name: str
    needs: str

    def __init__(self) -> None:
        self.engine: Any = pytest.importorskip(self.needs, reason=f"{self.needs} is not installed")
        self.operators: Any = importlib.import_module(f"edgegrad.{self.name}")

    def array(self, a: np.ndarray) -> Any:
        """Put an array into the framework."""
        raise NotImplementedError

    def numpy(self, a: Any) -> np.ndarray:
        """Take an array out of it."""
        return np.asarray(a)

    def vjp(self, function: Function, arrays: Arrays, cotangent: Any) -> tuple[Any, Any]:
        """The value, and the gradients of its product with the cotangent, differentiable."""
        raise NotImplementedError

    def derive(self, function: Function, arrays: Arrays, cotangent: Any, *c: Any) -> Any:
        """The value, its gradients, and if there are directions, those of the gradients."""
        value, first = self.vjp(function, arrays, cotangent)
        if not c:
            return value, first, ()

        def along(*xs: Any) -> Any:
            found = self.vjp(function, xs[:-1], xs[-1])[1]
            return sum((a * b).sum() for a, b in zip(found, c, strict=True))

        second = self.vjp(along, (*arrays, cotangent), self.array(np.array(1.0)))[1]
        return value, first, second

    def derivatives(self, example: Example, order: int) -> Derived:
        """Derivatives of an example for arrays that depend on its shapes alone."""
        rng = np.random.default_rng(7)
        arrays = [self.array(a) for a in example.variables.values()]
        cotangent = self.array(rng.standard_normal(example.n_outputs))
        shapes = [a.shape for a in example.variables.values()]
        c = [self.array(rng.standard_normal(s)) for s in shapes] if order == 2 else []
        function = example.function(self)
        value, first, second = self.derive(function, arrays, cotangent, *c)
        numpy = self.numpy
        return Derived(numpy(value), [numpy(a) for a in first], [numpy(a) for a in second])


class Torch(Framework):
    name = needs = "torch"

    def array(self, a: np.ndarray) -> Any:
        return self.engine.from_numpy(np.array(a))

    def numpy(self, a: Any) -> np.ndarray:
        return a.detach().numpy()

    def vjp(self, function: Function, arrays: Arrays, cotangent: Any) -> tuple[Any, Any]:
        value, pullback = self.engine.func.vjp(function, *arrays)
        return value, pullback(cotangent)


class Jax(Framework):
    name = needs = "jax"

    def array(self, a: np.ndarray) -> Any:
        return self.engine.numpy.asarray(a)

    def vjp(self, function: Function, arrays: Arrays, cotangent: Any) -> tuple[Any, Any]:
        value, pullback = self.engine.vjp(function, *arrays)
        return value, pullback(cotangent)

    def derive(self, function: Function, arrays: Arrays, cotangent: Any, *c: Any) -> Any:
        whole = super().derive
        return self.engine.jit(lambda xs, g, c: whole(function, xs, g, *c))(arrays, cotangent, c)


class Autograd(Framework):
    name = needs = "autograd"

    def array(self, a: np.ndarray) -> Any:
        return np.array(a)

    def vjp(self, function: Function, arrays: Arrays, cotangent: Any) -> tuple[Any, Any]:
        core = importlib.import_module("autograd.core")
        pack = importlib.import_module("autograd.builtins").tuple
        pullback, value = core.make_vjp(lambda xs: function(*xs), pack(tuple(arrays)))
        return value, pullback(cotangent)


FRAMEWORKS = {f.name: f for f in (Torch, Jax, Autograd)}


@pytest.fixture(params=list(FRAMEWORKS))
def framework(request: pytest.FixtureRequest) -> Iterator[Framework]:
    """Run the test in every framework that is installed, in float64."""
    yield from in_framework(request.param)


def in_framework(name: str) -> Iterator[Framework]:
    """Give a framework; JAX has float64 meanwhile."""
    framework = FRAMEWORKS[name]()
    if name != "jax":
        yield framework
        return
    with framework.engine.enable_x64(True), warnings.catch_warnings():
        yield framework
