"""Single calls of public functions, with arrays a test can look into or spoil."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import edgegrad
import graphs
import reference
from devices import is_empty
from reference import Case


@dataclass
class Made:
    """The arrays of one call on a device: inputs as given, outputs filled with NaN."""

    case: Case
    device: Any
    struct: Any
    arrays: dict[str, Any]

    def __call__(self, **changed: Any) -> dict[str, np.ndarray]:
        """Make the call, some arguments exchanged; return copies of what it wrote."""
        self.launch(**changed)
        return self.written()

    def launch(self, **changed: Any) -> None:
        """Make the call without looking at what it wrote."""
        self.case.call({**self.arrays, **changed}, self.struct)

    def written(self) -> dict[str, np.ndarray]:
        """Copies of the outputs."""
        names = (a.name for a in self.case.args if a.written)
        present = {n: self.arrays[n] for n in names if self.arrays[n] is not None}
        return {n: self.device.numpy(a) for n, a in present.items()}

    def untouched(self) -> bool:
        """Whether every output is still what it was filled with."""
        return all(is_empty(a).all() for a in self.written().values())


def exact(case: Case, T: Any, companion_is_float: bool = False) -> dict[str, Any]:
    """What a call reads, rounded to its dtypes, as float64."""
    read = reference.rounded(case, np.dtype(T), companion_is_float)
    return {k: None if a is None else a.astype(np.float64) for k, a in read.items()}


def make(
    case: Case,
    graph: graphs.GraphData,
    device: Any,
    T: Any = np.float32,
    IdxT: Any = np.int32,
    companion_is_float: bool = False,
    struct: Any = None,
) -> Made:
    """Arrays for a call, with outputs of the shapes the oracle gives."""
    T = np.dtype(T)
    read = reference.rounded(case, T, companion_is_float, IdxT)
    oracle = case.oracle(exact(case, T, companion_is_float))
    shapes = {name: b.value.shape for name, b in oracle.items()}
    arrays: dict[str, Any] = {}
    for a in case.args:
        if a.name in shapes and a.name not in case.writes_none:
            dtype = reference.dtype_of(a, T, companion_is_float, IdxT)
            arrays[a.name] = device.poisoned(shapes[a.name], dtype)
        else:
            given = read.get(a.name)
            arrays[a.name] = None if given is None else device.array(given)
    return Made(case, device, struct or graph.make(device, IdxT, case.kind), arrays)


def _given(case: Case) -> int:
    return sum(a is not None for a in case.reads.values())


def fullest(op: Any, half: str, graph: graphs.GraphData, extended: bool = False) -> Case:
    """The case of one function with the most arrays and options set; see `covering`."""
    return covering(op, half, graph, extended)[0]


def covering(op: Any, half: str, graph: graphs.GraphData, extended: bool = False) -> list[Case]:
    """Cases of one function, the fullest first, that together have every array.

    `extended`: with the axes that a caller may leave out (the batch, heads), else without.
    """
    free = {axis for a in (*op.inputs, *op.outputs) for axis in a.brackets} - op.derived.keys()

    def fits(case: Case) -> bool:
        return not free & set(case.without) if extended else free <= set(case.without)

    found = [case for case in reference.cases_of(op, half, graph) if fits(case)]
    found.sort(key=lambda c: (-_given(c), -sum(map(bool, c.options.values()))))
    chosen, seen = [], set[str]()
    for case in found:
        arrays = {k for k, a in case.reads.items() if a is not None}
        arrays |= case.oracle(exact(case, np.float32)).keys()
        if not chosen or not arrays <= seen:
            chosen.append(case)
            seen |= arrays
    return chosen


def functions() -> list[tuple[Any, str]]:
    """Every operator with each of its halves."""
    return [(op, half) for op in edgegrad.operators.OPERATORS for half in ("fwd", "bwd")]


def function_id(value: Any) -> str:
    """Parametrisation ids: the name of the operator, or the half."""
    return value if isinstance(value, str) else value.name
