"""The correctness check for people: it passes as things are, and fails when they are not."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import devices
import edgegrad.operators
from edgegrad.operator import Operator

sys.path.append(str(Path(__file__).parents[2] / "scripts"))

import check_against_scipy as script

HALVES = [(op, half) for op in edgegrad.operators.OPERATORS for half in ("fwd", "bwd")]
SMALL = ["--graphs", "multi_edge", "--dtype", "float64"]


def _table(out: str) -> list[tuple[str, ...]]:
    lines = out.split("\n\n")[0].splitlines()
    assert tuple(lines[0].split()) == script.HEADER
    return [tuple(line.split()) for line in lines[1:]]


def test_brief_passes_and_has_every_function(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "rows.json"
    assert script.main(["--brief", "--json", str(file)]) == 0
    captured = capsys.readouterr()
    rows = json.loads(file.read_text())["rows"]
    assert {r["operator"] for r in rows} == {f"{op.name}_{half}" for op, half in HALVES}
    assert {r["graph"] for r in rows} == set(script.BRIEF_GRAPHS)
    assert {r["dtype"] for r in rows} == set(script.BRIEF_DTYPES)
    assert all(r["ok"] and r["calls"] > 0 for r in rows)
    keys = ("operator", "graph", "dtype")
    assert _table(captured.out) == [
        (*(r[k] for k in keys), str(r["calls"]), f"{r['worst']:.3g}", "ok") for r in rows
    ]
    assert captured.err == ""


def test_json_to_stdout_is_nothing_but_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert script.main([*SMALL, "--json", "-"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["device"] == "host"
    assert {r["graph"] for r in data["rows"]} == {"multi_edge"}


def _slightly_off(written: list[Any], _: list[Any]) -> None:
    for a in written:
        a *= 1 + 1e-9


def _nan(written: list[Any], _: list[Any]) -> None:
    written[0].reshape(-1)[-1] = np.nan


def _changes_input(_: list[Any], read: list[Any]) -> None:
    read[0].reshape(-1)[0] += 1


def _raises(_: list[Any], __: list[Any]) -> None:
    raise RuntimeError("two\nlines")


@pytest.mark.parametrize("spoil", [_slightly_off, _nan, _changes_input, _raises])
@pytest.mark.parametrize(("op", "half"), HALVES, ids=lambda x: getattr(x, "name", x))
def test_a_wrong_operator_fails(
    op: Operator,
    half: str,
    spoil: Callable[[list[Any], list[Any]], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    name = f"{op.name}_{half}"
    right = getattr(edgegrad.operators, name)

    def wrong(**arguments: Any) -> None:
        right(**arguments)
        given = [(a, arguments[a.name]) for a in getattr(op, half)]
        arrays = [(a, array) for a, array in given if array is not None]
        spoil(
            [array for a, array in arrays if a.written],
            [array for a, array in arrays if not a.written],
        )

    monkeypatch.setattr(edgegrad.operators, name, wrong)
    assert script.main([*SMALL, "--json", "-"]) == 1
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [r["operator"] for r in rows if not r["ok"]] == [name]
    assert script.main(SMALL) == 1
    out = capsys.readouterr().out
    assert [row[-1] for row in _table(out) if row[0] == name] == ["FAILED"]
    *details, last = out.split("\n\n")[1].splitlines()
    assert len(details) == 1
    assert details[0].startswith(f"multi_edge, float64: {name}")
    assert last.endswith(f"1 of {len(rows)} rows FAILED")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--ops", "no_such_operator"],
        ["--dtype", "float8"],
        ["--graphs", "no_such_graph"],
        ["--device", "tpu"],
        ["--json", "no_such_folder/rows.json"],
        ["--json", "."],
        ["--what"],
    ],
    ids=" ".join,
)
def test_a_bad_option_is_one_line(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        script.main(arguments)
    captured = capsys.readouterr()
    assert (raised.value.code, captured.out) == (2, "")
    assert captured.err.count("\n") == 1
    assert arguments[0] in captured.err


def test_without_a_gpu_one_line_says_why(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(devices, "missing_gpu", lambda: "no driver: install it")
    with pytest.raises(SystemExit) as raised:
        script.main(["--device", "cuda"])
    assert raised.value.code == 2
    assert capsys.readouterr().err == (
        "check_against_scipy: --device cuda: no driver: install it\n"
    )


def test_list_names_functions_and_graphs(capsys: pytest.CaptureFixture[str]) -> None:
    assert script.main(["--list"]) == 0
    words = capsys.readouterr().out.split()
    assert {f"{op.name}_{half}" for op, half in HALVES} <= set(words)
    assert set(script.BRIEF_GRAPHS) <= set(words)


def test_progress_bar_needs_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("rich")
    stderr = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stderr)
    assert script.main(SMALL) == 0
    assert stderr.getvalue() == ""
    monkeypatch.setattr(stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    assert script.main(SMALL) == 0
    assert "checking" in stderr.getvalue()


def _run(*arguments: str, without: str) -> subprocess.CompletedProcess[str]:
    """Run the script as a program where a module is not installed."""
    code = (
        "import runpy, sys; sys.modules[sys.argv[1]] = None; path = sys.argv[2]; "
        "del sys.argv[:2]; runpy.run_path(path, run_name='__main__')"
    )
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code, without, script.__file__, *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": ""},
    )


@pytest.mark.parametrize("device", ["host", "simt"])
def test_needs_no_test_framework(device: str) -> None:
    done = _run("--device", device, *SMALL, without="pytest")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"calls on {device}" in done.stdout


@pytest.mark.parametrize("module", ["scipy", "ml_dtypes"])
def test_what_is_missing_is_one_line(module: str) -> None:
    done = _run("--brief", without=module)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert module in done.stderr
    assert "pip install" in done.stderr
