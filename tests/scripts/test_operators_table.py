"""docs/operators.md says what the declarations say."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from edgegrad import operators
from edgegrad.operator import Operator
from edgegrad.operators.history_declarations import STORE_OPERATORS

sys.path.append(str(Path(__file__).parents[2] / "scripts"))

import operators_table as script


def test_the_page_is_up_to_date() -> None:
    assert script.main(["--check"]) == 0


def test_check_finds_a_page_that_is_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "operators.md"
    assert script.main(["--check"], page) == 1
    assert not page.exists()
    page.write_text("old\n")
    assert script.main(["--check"], page) == 1
    assert page.read_text() == "old\n"
    assert capsys.readouterr().out.count("out of date") == 2
    assert script.main([], page) == 0
    assert script.main(["--check"], page) == 0


@pytest.mark.parametrize("op", [*operators.OPERATORS, *STORE_OPERATORS], ids=lambda op: op.name)
def test_every_array_has_a_row_and_a_description(op: Operator) -> None:
    lines = list(script.section(op))
    for half in script.halves(op):
        described = script.described(op, half)
        for a in getattr(op, half):
            name = f"*{a.name}*" if a.optional else a.name
            axes = f"`({', '.join(a.axes)})`"
            dtype = a.dtype.replace("|", r"\|")
            use = "changed" if a.changed else "written" if a.written else "read"
            assert described[a.name]
            assert f"| {name} | {axes} | {dtype} | {use} | {described[a.name]} |" in lines


def test_every_operator_is_in_an_overview() -> None:
    text = script.TARGET.read_text(encoding="utf-8")
    for op in (*operators.OPERATORS, *STORE_OPERATORS):
        assert f"\n| [`{op.name}`](#{op.name}) | " in text


def test_an_operator_that_promises_nothing_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    op = operators.OPERATORS[0]
    monkeypatch.setattr(getattr(operators, f"{op.name}_fwd"), "__doc__", "Aggregate.")
    with pytest.raises(LookupError, match=f"{op.name}_fwd: .*Determinism"):
        script.page([op], [])
