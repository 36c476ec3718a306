"""What holds for every call of every operator: repeatable, whole, and nothing more than asked."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import calls
import devices
import edgegrad
import graphs
import reference
import simt
from edgegrad.backends import cuda
from graphs import GraphData
from tolerances import bfloat16

GRAPH = graphs.make("more_sources")
FUNCTIONS = pytest.mark.parametrize(("op", "half"), calls.functions(), ids=calls.function_id)
OPERATORS = pytest.mark.parametrize("op", edgegrad.operators.OPERATORS, ids=calls.function_id)


@pytest.fixture
def on_simt(monkeypatch: pytest.MonkeyPatch) -> devices.Simt:
    device = devices.Simt()
    device.launches = simt.install(monkeypatch)
    return device


def _same(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> bool:
    assert a.keys() == b.keys()
    return all(a[k].dtype == b[k].dtype and a[k].tobytes() == b[k].tobytes() for k in a)


@pytest.mark.parametrize("name", ["empty", "no_edges", "more_sources", "bipartite"])
def test_every_case_is_whole_and_leaves_its_inputs(device: Any, name: str) -> None:
    """`reference.run` fills outputs with NaN and compares inputs with what they were."""
    graph = graphs.make(name)
    for case in reference.cases(graph):
        ran = reference.run(case, graph, device, np.dtype(np.float32))
        assert ran.got
        assert ran.worst() <= 1, case.name
        if graph.n_edges == 0:
            assert not any(calls.is_empty(a).any() for a in ran.got.values())


@FUNCTIONS
@pytest.mark.parametrize("T", [np.float16, np.float64], ids=["float16", "float64"])
def test_second_call_gives_the_same_bits(device: Any, op: Any, half: str, T: Any) -> None:
    for batched in (False, True):
        made = calls.make(calls.fullest(op, half, GRAPH, batched), GRAPH, device, T)
        first, second = made(), made()
        other = calls.make(made.case, GRAPH, device, T)()
        assert _same(first, second)
        assert _same(first, other)


def _large() -> GraphData:
    """Many chunks of work, rows and columns longer than a piece, parallel edges."""
    rng = np.random.default_rng(11)
    spread = rng.integers(0, 700, (2, 16_000))
    hub = np.full(9_000, 5)
    src = np.concatenate([spread[0], rng.integers(0, 700, 9_000), hub])
    dst = np.concatenate([spread[1], hub, rng.integers(0, 700, 9_000)])
    return graphs.from_edges(src, dst, 700, 700, n_types=3)


@pytest.fixture(scope="module")
def large() -> GraphData:
    return _large()


@pytest.fixture
def threads() -> Iterator[Any]:
    yield edgegrad.set_num_threads
    edgegrad.set_num_threads(0)


@FUNCTIONS
@pytest.mark.parametrize("T", [bfloat16, np.dtype(np.float32)], ids=str)
def test_bits_do_not_depend_on_threads(
    op: Any, half: str, T: Any, large: GraphData, threads: Any
) -> None:
    host = devices.Host()
    for case in (calls.fullest(op, half, large), _barest(op, half, large)):
        made = calls.make(case, large, host, T)
        threads(1)
        alone = made()
        assert not any(calls.is_empty(a).any() for a in alone.values())
        for n in (2, 3, 5):
            threads(n)
            fresh = calls.make(case, large, host, T, struct=made.struct)
            assert _same(fresh(), alone), (case.name, n)


def _barest(op: Any, half: str, graph: GraphData) -> reference.Case:
    """The case with the fewest arrays and options."""
    found = reference.cases_of(op, half, graph)
    return min(found, key=lambda c: sum(a is not None for a in c.reads.values()))


def test_launched_kernels_are_declared(on_simt: devices.Simt) -> None:
    """An empty grid is an error in the CPU run, so this also sees that none is launched."""
    declared = {name for _, name in edgegrad.operators.kernels()}
    seen = set()
    for name, index_dtype in itertools.product(("no_edges", "more_sources"), (np.int32, np.int64)):
        graph = graphs.make(name)
        for case in reference.cases(graph):
            reference.run(case, graph, on_simt, np.dtype(np.float32), index_dtype)
    seen = {record.kernel for record in on_simt.launches}
    assert seen <= declared
    assert len(seen) > 2


def test_an_empty_grid_is_not_launched(on_simt: devices.Simt) -> None:
    source, name = edgegrad.operators.kernels()[0]
    for grid in ((0,), (3, 0, 1), (0, 1, 1)):
        cuda.launch(cuda.Launch(source, name, grid, (32,), ()), "cuda:0")
    assert on_simt.launches == []


@OPERATORS
def test_nothing_asked_nothing_done(on_simt: devices.Simt, op: Any) -> None:
    host = devices.Host()
    for place in (on_simt, host):
        case = calls.fullest(op, "bwd", GRAPH)
        made = calls.make(case, GRAPH, place)
        on_simt.launches.clear()
        made(**{a.name: None for a in op.bwd if a.written})
        assert on_simt.launches == []
        assert not made.struct.has_reverse
        assert made.untouched()
        assert made.struct._cache == {}, "something was built for no result"


@OPERATORS
def test_each_gradient_alone(device: Any, op: Any) -> None:
    """Leaving out gradients changes no bit of the others."""
    for batched in (False, True):
        made = calls.make(calls.fullest(op, "bwd", GRAPH, batched), GRAPH, device)
        together = made()
        for name, expected in together.items():
            alone = calls.make(made.case, GRAPH, device)
            others = [n for n in together if n != name]
            alone(**dict.fromkeys(others))
            got = alone.written()
            assert got[name].tobytes() == expected.tobytes(), name
            assert all(calls.is_empty(got[n]).all() for n in others)


def _idle_ends() -> GraphData:
    """Sources 8 to 11 are nobody's source nor destination; destinations 2 and 5 have no edges."""
    rng = np.random.default_rng(5)
    dst = rng.choice([0, 1, 3, 4, 6, 7], 30)
    return graphs.from_edges(rng.integers(0, 8, 30), dst, 12, 8)


@FUNCTIONS
def test_values_nobody_refers_to_do_not_leak(device: Any, op: Any, half: str) -> None:
    graph = _idle_ends()
    idle = {"n_src_nodes": [8, 9, 10, 11], "n_dst_nodes": [2, 5]}
    spoiled = 0
    for case in reference.cases_of(op, half, graph):
        made = calls.make(case, graph, device)
        clean = made()
        # The own row of a destination reaches its output, and back, without any edge.
        has_own = case.options.get("concat_own") or op.name.startswith("agg_concat")
        free = [axis for axis in idle if not (has_own and axis == "n_dst_nodes")]
        reads = [a for a in case.args if not a.written and a.dtype != "Idx"]
        at_stake = [a for a in reads if made.arrays[a.name] is not None and set(free) & set(a.axes)]
        spoiled += not at_stake
        for arg in at_stake:
            a, axis = made.arrays[arg.name], next(x for x in arg.axes if x in free)
            for value in (np.nan, np.inf):
                bad = device.numpy(a)
                at = case.axes(arg).index(axis)
                bad[(slice(None),) * at + (idle[axis],)] = value
                assert _same(made(**{arg.name: device.array(bad)}), clean), (case.name, arg.name)
                spoiled += 1
    assert spoiled


@FUNCTIONS
def test_stream_reaches_every_launch(on_simt: devices.Simt, op: Any, half: str) -> None:
    graph = graphs.make("star_hub")
    made = calls.make(calls.fullest(op, half, graph), graph, on_simt)
    stream = simt.cupy_standin.cuda.Stream()
    on_simt.launches.clear()
    made(stream_id=stream.ptr)
    assert on_simt.launches
    assert {record.stream for record in on_simt.launches} == {stream.ptr}
