"""Declarations, signatures and docstrings of all operators agree."""

from __future__ import annotations

import inspect
import itertools
from typing import Any

import pytest

import calls
import edgegrad
from edgegrad.operator import FLOATS, Arg

FUNCTIONS = pytest.mark.parametrize(("op", "half"), calls.functions(), ids=calls.function_id)


def _function(op: Any, half: str) -> Any:
    return getattr(edgegrad.operators, f"{op.name}_{half}")


def _words(text: str) -> str:
    return " ".join(text.split())


def _documented(a: Arg) -> str:
    return f"{a.name} : array ({', '.join(a.axes)}), {a.dtype}" + ", or None" * a.optional


@FUNCTIONS
def test_signature(op: Any, half: str) -> None:
    """Arrays in the declared order, the graph, options, stream_id; the rest by keyword."""
    parameters = list(inspect.signature(_function(op, half)).parameters.values())
    declared = getattr(op, half)
    by_position = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    by_keyword = [p for p in parameters if p.kind is p.KEYWORD_ONLY]
    assert len(by_position) + len(by_keyword) == len(parameters)
    leading = [a.name for a in declared if not a.keyword]
    expected = [*leading, *(["graph"] if op.graphs else []), *op.sizes.get(half, ())]
    others = [name for name in by_position if name not in _trailing_required(declared)]
    assert others[: len(expected)] == expected
    arrays = {a.name for a in declared}
    kind = inspect.signature(_function(op, half)).parameters["stream_id"].kind
    options = [p.name for p in parameters if p.name not in arrays and p.kind is kind]
    assert options[-1] == "stream_id"
    trailing = [a.name for a in declared if a.keyword]
    assert set(trailing) <= {p.name for p in parameters}
    for p in parameters:
        if p.name in expected or p.name in _trailing_required(declared):
            assert p.default is p.empty, p.name
        elif p.name in trailing:
            assert p.default is None, p.name
        else:
            # What has no sensible default comes first among the options.
            assert p.default is not p.empty or p.name == "num_heads", p.name


def _trailing_required(declared: tuple[Arg, ...]) -> set[str]:
    """Arrays that come after the graph and are always needed."""
    return {a.name for a in declared if a.keyword and not a.optional}


@FUNCTIONS
def test_halves_take_the_same_options(op: Any, half: str) -> None:
    arrays = {a.name for a in (*op.fwd, *op.bwd)}
    arrays |= {name for sizes in op.sizes.values() for name in sizes}
    options = [
        {n: p.default for n, p in inspect.signature(f).parameters.items() if n not in arrays}
        for f in (_function(op, "fwd"), _function(op, "bwd"))
    ]
    options[1].pop("deterministic", None)  # a published option of backward alone
    assert options[0] == options[1]
    assert options[0]["stream_id"] == 0


@FUNCTIONS
def test_docstring_has_every_array(op: Any, half: str) -> None:
    lines = [line.strip() for line in inspect.getdoc(_function(op, half)).splitlines()]
    at = [lines.index(_documented(a)) for a in getattr(op, half) if not a.keyword]
    assert at == sorted(at), "arrays are documented in another order than they are declared"
    for a in getattr(op, half):
        assert _documented(a) in lines
    for name in inspect.signature(_function(op, half)).parameters:
        assert any(name in line.partition(" : ")[0].split(", ") for line in lines), name


@FUNCTIONS
def test_docstring_has_every_section(op: Any, half: str) -> None:
    text = inspect.getdoc(_function(op, half))
    lines = text.splitlines()
    titles = [a for a, b in itertools.pairwise(lines) if b and set(b) == {"-"}]
    assert titles == ["Parameters", "Raises", "Notes"]
    notes = _words(text.partition("Notes\n-----")[2])
    for word in ("Dtypes", "eterminism", "Scratch"):
        assert word in notes, word
    assert f"Source: {op.source}" in notes
    assert ".. math::" in text
    assert "without in-edges gets 0" in notes or half == "bwd"


@FUNCTIONS
def test_forward_names_its_dtypes(op: Any, half: str) -> None:
    notes = _words(inspect.getdoc(_function(op, half)).partition("Notes\n-----")[2])
    named = all(name in notes for name in FLOATS)
    assert named or "as in forward" in notes


@pytest.mark.parametrize("op", edgegrad.operators.OPERATORS, ids=calls.function_id)
def test_declaration_is_consistent(op: Any) -> None:
    names = [a.name for a in op.fwd]
    assert len(set(names)) == len(names)
    assert len({a.name for a in op.bwd}) == len(op.bwd)
    assert set(op.keeps) <= {a.name for a in (*op.inputs, *op.outputs)}
    axes = {x for a in (*op.fwd, *op.bwd) for x in a.axes}
    assert set(op.derived) <= axes
    gradients = [a.grad for a in (*op.inputs, *op.outputs) if a.grad]
    assert len(set(gradients)) == len(gradients)
    assert all(not a.written for a in (*op.inputs, *op.outputs, *op.saved))
    assert [a.name for a in op.fwd if a.written] == [a.name for a in (*op.outputs, *op.saved)]
    assert all(a.optional for a in op.bwd if a.written)
    assert op.source


@FUNCTIONS
def test_public(op: Any, half: str) -> None:
    assert f"{op.name}_{half}" in edgegrad.operators.__all__
    assert _function(op, half).__name__ == f"{op.name}_{half}"


def test_kernels_are_listed_once() -> None:
    kernels = edgegrad.operators.kernels()
    assert len(set(kernels)) == len(kernels)
    for source, name in kernels:
        assert (edgegrad.backends.cuda.KERNELS / source).is_file()
        assert name.startswith("edgegrad::")
        assert name.endswith(">")
