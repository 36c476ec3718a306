"""Independent oracles: float64, by scipy.sparse and dense products, never by the code under test.

`reference.<family>` of an operator family has `cases(graph, rng)`: calls of its public functions
with the arrays they read and an oracle for the arrays they write.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import edgegrad.operators
from edgegrad.operator import HALVES, Arg, Operator, allowed_dtypes
from graphs import GraphData
from tolerances import Bounded

Arrays = Mapping[str, Any]


@dataclass(frozen=True)
class Case:
    """One call: a half of an operator, options, float64 arrays to read, an oracle for the rest."""

    op: Operator
    half: str
    options: Mapping[str, Any]
    reads: Arrays
    oracle: Callable[[Arrays], dict[str, Bounded]]
    kind: str = "csc"
    without: tuple[str, ...] = ()  # axes in brackets that its arrays do not have
    writes_none: tuple[str, ...] = field(default=())

    @property
    def name(self) -> str:
        """Name of the function, and the options that are not at their defaults."""
        chosen = [k if v is True else f"{k}={v}" for k, v in self.options.items() if v]
        given = [k for k, v in self.reads.items() if v is not None]
        return ", ".join([f"{self.op.name}_{self.half}", *chosen, *given[2:]])

    def axes(self, arg: Arg) -> tuple[str, ...]:
        """The axes that an array of this call has."""
        return tuple(axis for axis in arg.axes if axis not in self.without)

    @property
    def function(self) -> Callable[..., None]:
        """The public function."""
        return getattr(edgegrad.operators, f"{self.op.name}_{self.half}")

    def call(self, arrays: Arrays, struct: Any) -> None:
        """Call the public function, with the graph if it takes one."""
        graph = {"graph": struct} if self.op.graphs else {}
        self.function(**arrays, **graph, **self.options)

    @property
    def args(self) -> tuple[Any, ...]:
        """The declaration's arrays of this half."""
        return getattr(self.op, self.half)


@dataclass
class Ran:
    """A call that was made: what it wrote and what should have been written."""

    got: dict[str, np.ndarray]
    expected: dict[str, Bounded]

    def worst(self) -> float:
        """Largest error over its bound among the arrays written."""
        return max((self.expected[name].worst(a) for name, a in self.got.items()), default=0.0)


def dtype_of(arg: Any, T: np.dtype, companion_is_float: bool, IdxT: Any = np.int32) -> np.dtype:
    """NumPy dtype of a declared array in a call with features of dtype T and ids of IdxT."""
    if arg.dtype == "T":
        return T
    if arg.dtype == "Idx":
        return np.dtype(IdxT)
    allowed, shared = allowed_dtypes(arg.dtype, arg.narrower, str(T))
    if shared:
        return np.dtype(np.float32) if companion_is_float and str(T) in HALVES else T
    # The widest of what is allowed; booleans are for tests of their own.
    return max((np.dtype(d) for d in allowed if d != "bool"), key=lambda d: d.itemsize)


def rounded(
    case: Case, T: np.dtype, companion_is_float: bool = False, IdxT: Any = np.int32
) -> dict[str, Any]:
    """The arrays a call reads, rounded to the dtypes it is made with."""
    args = {a.name: a for a in case.args}
    return {
        name: None
        if a is None
        else np.asarray(a).astype(dtype_of(args[name], T, companion_is_float, IdxT))
        for name, a in case.reads.items()
    }


def run(
    case: Case,
    graph: GraphData,
    device: Any,
    T: np.dtype,
    IdxT: Any = np.int32,
    companion_is_float: bool = False,
    struct: Any = None,
) -> Ran:
    """Call the public function on `device` with poisoned outputs; return results and oracle."""
    struct = graph.make(device, IdxT, case.kind) if struct is None else struct
    read = rounded(case, T, companion_is_float, IdxT)
    exact = {k: None if a is None else a.astype(np.float64) for k, a in read.items()}
    expected = case.oracle(exact)
    args = {a.name: a for a in case.args}
    on_device = {k: None if a is None else device.array(a) for k, a in read.items()}
    written = {
        name: device.poisoned(b.value.shape, dtype_of(args[name], T, companion_is_float, IdxT))
        for name, b in expected.items()
        if name not in case.writes_none
    }
    missing = {a.name: None for a in case.args if a.name not in {*written, *on_device}}
    case.call({**on_device, **written, **missing}, struct)
    for name, a in on_device.items():
        if a is not None:
            same = device.numpy(a).tobytes() == read[name].tobytes()
            assert same, f"{case.name}: `{name}` is an input and was changed"
    return Ran({k: device.numpy(a) for k, a in written.items()}, expected)


def cases(graph: GraphData, seed: int = 0) -> Iterator[Case]:
    """All cases of all operator families on one graph."""
    for family in edgegrad.operators.FAMILIES:
        yield from _of_family(family.__name__, graph, seed)


def cases_of(op: Operator, half: str, graph: GraphData) -> list[Case]:
    """All cases of one function on one graph."""
    family = next(f for f in edgegrad.operators.FAMILIES if op in f.OPERATORS)
    return [c for c in _of_family(family.__name__, graph, 0) if c.op is op and c.half == half]


@functools.lru_cache(maxsize=64)
def _of_family(name: str, graph: GraphData, seed: int) -> tuple[Case, ...]:
    module = importlib.import_module(f"reference.{name.rpartition('.')[2]}")
    return tuple(module.cases(graph, np.random.default_rng(seed)))
