"""Stores: declarations, signatures and docstrings agree, and every spoiled array is refused."""

from __future__ import annotations

import inspect
import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import devices
import edgegrad
import simt
import spoil
from edgegrad.operator import HALVES, Arg, Operator
from edgegrad.operators.history_declarations import STORE_OPERATORS

OPERATORS = pytest.mark.parametrize("op", STORE_OPERATORS, ids=lambda op: op.name)
SIZES = {"n_rows": 6, "dim": 4, "n_ids": 3, "n_push_ids": 3, "n_pull_ids": 5}
TYPES = {"int32|int64": np.int32, "int64": np.int64, "bool": np.bool_}
OPTIONS = {"history_stale": {"step": 5, "max_age": 2}, "history_push": {"step": 5}}


def _function(op: Operator) -> Any:
    return getattr(edgegrad.operators, op.name)


@OPERATORS
def test_signature_and_docstring(op: Operator) -> None:
    function = _function(op)
    assert op.name in edgegrad.operators.__all__
    parameters = inspect.signature(function).parameters
    text = inspect.getdoc(function)
    lines = [line.strip() for line in text.splitlines()]
    for a in op.fwd:
        dtype = a.dtype.replace("|", " or ")
        line = f"{a.name} : array ({', '.join(a.axes)}), {dtype}" + ", or None" * a.optional
        assert line in lines
        keyword = parameters[a.name].kind is inspect.Parameter.KEYWORD_ONLY
        assert keyword == a.keyword
    for name in parameters:
        assert any(name in line.partition(" : ")[0].split(", ") for line in lines), name
    assert parameters["stream_id"].default == 0
    notes = " ".join(text.partition("Notes\n-----")[2].split())
    assert f"Source: {op.source}" in notes
    for word in ("Dtypes", "eterminism", "cratch"):
        assert word in notes


class Call:
    """A valid call whose arrays can be spoiled; the part of `calls.Made` that spoilers read."""

    def __init__(self, op: Operator, device: Any) -> None:
        case = SimpleNamespace(op=op, args=op.fwd, axes=lambda arg: arg.axes, without=())
        self.op, self.device, self.case = op, device, case
        self.arrays: dict[str, Any] = {}
        for a in op.fwd:
            shape = tuple(SIZES[x] for x in a.axes)
            self.arrays[a.name] = device.array(np.zeros(shape, TYPES.get(a.dtype, np.float32)))

    def __call__(self, **changed: Any) -> None:
        _function(self.op)(**{**self.arrays, **changed}, **OPTIONS.get(self.op.name, {}))


# Those that ask for another kind of number, or for two axes, where ids and ages are right.
_NOT_FOR_IDS = {"int64", "bool", "columns_apart", "other_float", "no_array"}


def _is_right(call: Call, arg: Arg, how: str, bad: spoil.Spoiled) -> bool:
    """Whether a spoiler that knows float arrays and graphs has made an array that is valid here."""
    if how == "other_float":
        return str(bad.value.dtype) in HALVES  # beside float32
    if how == "shared_memory":  # of another dtype: refused for that
        return bad.value.dtype != call.arrays[arg.name].dtype
    return how == "size_off" and sum(bad.axis in a.axes for a in call.op.fwd) == 1


def _refused(call: Call, arg: Arg, bad: spoil.Spoiled) -> None:
    with pytest.raises(bad.error) as caught:
        call(**{arg.name: bad.value})
    assert isinstance(caught.value, edgegrad.ArgumentError)
    assert re.fullmatch(rf"{call.op.name}: `\w+` has .+, expected .+", str(caught.value))


@OPERATORS
@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")  # NaN as an integer
@pytest.mark.parametrize("how", spoil.SPOILERS)
@pytest.mark.parametrize("place", ["host", "simt"])
def test_spoiled(op: Operator, how: str, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    simt.install(monkeypatch)
    call = Call(op, devices.Host() if place == "host" else devices.Simt())
    for arg in op.fwd:
        if how in _NOT_FOR_IDS and arg.dtype in TYPES:
            continue
        for bad in spoil.SPOILERS[how](call, arg):
            if not _is_right(call, arg, how, bad):
                _refused(call, arg, bad)
    call()


@OPERATORS
def test_arrays_of_a_wrong_kind_are_named(op: Operator) -> None:
    call = Call(op, devices.Host())
    for arg in op.fwd:
        for value in ([1, 2], "text", 3.5, np.zeros((3, 4), np.complex64)):
            with pytest.raises(TypeError, match=f"^{op.name}: `{arg.name}` has "):
                call(**{arg.name: value})


def test_of_two_float_types_one_is_float32() -> None:
    store, ids = np.zeros((6, 4), np.float64), np.zeros(3, np.int64)
    for dtype in (np.float16, np.float32):
        text = f"`output` has dtype {np.dtype(dtype)}, expected float64, since `store` has float64"
        with pytest.raises(TypeError, match=text):
            edgegrad.operators.history_pull(np.zeros((3, 4), dtype), store, ids)


def test_pinned_host_memory_may_hold_a_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels are given the host address; anything but the store must be on the GPU."""
    simt.install(monkeypatch)
    device = devices.Simt()
    call = Call(STORE_OPERATORS[0], device)
    with pytest.raises(ValueError, match="`store` has device cpu, expected cuda:0, where `ids` is"):
        call(store=np.zeros((6, 4), np.float32))
    with pytest.raises(ValueError, match="`output` has device cpu, expected cuda:0"):
        call(output=np.zeros((3, 4), np.float32))
