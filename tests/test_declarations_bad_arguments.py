"""Every array of every operator, spoiled in every way, is refused by name; nothing is written."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import calls
import devices
import edgegrad
import graphs
import simt
import spoil
from edgegrad.operator import BATCH, Arg
from tolerances import bfloat16

FUNCTIONS = pytest.mark.parametrize(("op", "half"), calls.functions(), ids=calls.function_id)
GRAPH = graphs.make("more_sources")


@pytest.fixture(params=["host", "simt"])
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A device, with arrays of the other at hand too."""
    simt.install(monkeypatch)
    return devices.Host() if request.param == "host" else devices.Simt()


def _made(op: Any, half: str, place: Any, batched: bool = False, **types: Any) -> calls.Made:
    return calls.make(calls.fullest(op, half, GRAPH, batched), GRAPH, place, **types)


def _to_blame(made: calls.Made, arg: Arg, axis: str) -> set[str]:
    """The arguments a message may name when an axis of `arg` has another size.

    The first array of the check gives free axes their sizes; if it is the odd one out, the message
    names one that disagrees with it.
    """
    op, half, sizes = made.case.op, made.case.half, made.struct.sizes
    if not axis or axis in sizes:
        return {arg.name}
    depends = {axis, *op.derived} if axis != BATCH else {BATCH}
    given = [a for a in op.checked[half] if made.arrays[a.name] is not None]
    first = next(a for a in given if axis in a.axes)
    if first.name != arg.name:
        return {arg.name}
    return {a.name for a in made.case.args if not depends.isdisjoint(a.axes)}


def _refused(made: calls.Made, arg: Arg, bad: spoil.Spoiled) -> re.Match[str]:
    function = f"{made.case.op.name}_{made.case.half}"
    with pytest.raises(bad.error) as caught:
        made(**{arg.name: bad.value})
    assert isinstance(caught.value, edgegrad.ArgumentError)
    message = re.fullmatch(rf"{function}: `(\w+)` has (.+), expected (.+)", str(caught.value))
    assert message, str(caught.value)
    assert made.untouched()
    return message


@FUNCTIONS
@pytest.mark.parametrize("batched", [False, True], ids=["", "batched"])
@pytest.mark.parametrize("how", spoil.SPOILERS)
def test_spoiled(place: Any, op: Any, half: str, how: str, batched: bool) -> None:
    if batched and not any(a.brackets for a in (*op.inputs, *op.outputs)):
        pytest.skip("no axis that could be left out")
    count, seen, no_rows = 0, set[str](), True
    for case in calls.covering(op, half, GRAPH, batched):
        made = calls.make(case, GRAPH, place)
        for arg in case.args:
            if made.arrays[arg.name] is None or arg.name in seen:
                continue
            seen.add(arg.name)
            no_rows &= len(case.axes(arg)) < 2
            for bad in spoil.SPOILERS[how](made, arg):
                count += 1
                _blames(_refused(made, arg, bad), made, arg, bad, how)
        assert not any(calls.is_empty(a).any() for a in made().values()), "a valid call fails"
    assert count or (no_rows and how == "fortran_order")


def _blames(message: Any, made: calls.Made, arg: Arg, bad: spoil.Spoiled, how: str) -> None:
    """The right argument is named, with what is wrong of it."""
    named, has = message[1], message[2]
    op, half = made.case.op, made.case.half
    if not op.graphs and arg.name == op.leader[half] and has.startswith("device "):
        # It says where the call runs: the others are elsewhere then.
        assert message[3].endswith(f"where `{arg.name}` is"), message
        return
    assert has.startswith(bad.has), (arg, message)
    if how == "other_float":
        assert f"`{arg.name}`" in message[0], (arg, message)
    elif how == "shared_memory":
        assert {named, has.split("`")[1]} == {arg.name, bad.axis}
    else:
        assert named in _to_blame(made, arg, bad.axis), (arg, message)


@FUNCTIONS
@pytest.mark.parametrize("T", [np.dtype(np.float16), bfloat16], ids=str)
def test_companions_agree(place: Any, op: Any, half: str, T: Any) -> None:
    """Beside half types a companion is T or float32, all of one name alike, and nothing else."""
    made = _made(op, half, place, T=T, companion_is_float=True)
    for arg in made.case.args:
        if not arg.dtype.isupper() or arg.dtype == "T" or made.arrays[arg.name] is None:
            continue
        a = place.numpy(made.arrays[arg.name])
        wide = spoil.Spoiled(place.array(a.astype(np.float64)), TypeError, "dtype float64")
        assert _refused(made, arg, wide)[1] == arg.name
        alike = [o for o in made.case.args if o.dtype == arg.dtype and o is not arg]
        others = [o for o in alike if made.arrays[o.name] is not None]
        if others:
            bad = spoil.Spoiled(place.array(a.astype(T)), TypeError, "dtype ")
            message = _refused(made, arg, bad)
            names = {arg.name, *(o.name for o in others)}
            assert {message[1], message[3].split("`")[1]} <= names, message[0]
    assert not any(calls.is_empty(a).any() for a in made().values())


@FUNCTIONS
def test_wrong_graphs(place: Any, op: Any, half: str) -> None:
    if not op.graphs:
        pytest.skip("takes no graph")
    made = _made(op, half, place)
    valid, wrong = made.struct, [None, object(), 3, (GRAPH.offsets, GRAPH.indices)]
    wrong += [GRAPH.make(place, kind=k) for k in ("csc", "csc_hg") if k not in op.graphs]
    for made.struct in wrong:
        with pytest.raises(TypeError, match=r"`graph` has type \w+, expected ") as caught:
            made()
        assert isinstance(caught.value, edgegrad.ArgumentError)
        assert "\n" not in str(caught.value)
        assert made.untouched()
    made.struct = valid
    assert not any(calls.is_empty(a).any() for a in made().values())


@FUNCTIONS
def test_graph_elsewhere(place: Any, op: Any, half: str) -> None:
    if not op.graphs:
        pytest.skip("takes no graph")
    other = devices.Simt() if place.name == "host" else devices.Host()
    made = _made(op, half, place)
    made.struct = GRAPH.make(other, kind=made.case.kind)
    with pytest.raises(ValueError, match=f"has device {place.location}, expected {other.location}"):
        made()
    assert made.untouched()
