from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from edgegrad.backends import cuda
from edgegrad.cli import main


@pytest.fixture
def tiny(tmp_path: Path) -> str:
    """Write twelve entities of two kinds, each kind with a hub of its own."""
    ids = np.arange(12, dtype=np.int32)
    np.savez(
        tmp_path / "tiny.npz",
        edge_index=np.stack([ids, 12 + ids % 2]).astype(np.int32),
        edge_type=np.zeros(12, np.int32),
        train_idx=ids[:4],
        train_y=ids[:4] % 2,
        test_idx=ids[4:],
        test_y=ids[4:] % 2,
        class_names=np.array(["even", "ödd"]),
    )
    return str(tmp_path / "tiny.npz")


def test_table_says_what_happened(tiny: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "rgcn", tiny, "--seeds", "2", "--bases", "2"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "R-GCN, entity classification on tiny" in out
    for words in (
        "entities         14\n",
        "triples          12\n",
        "4 to learn from, 8 to test on",
        "test accuracy    1.0000 +- 0.0000 (min 1.0000, max 1.0000)",
        "majority class   0.5000",
        "hidden 16, 2 bases",
        "time per epoch",
    ):
        assert words in out
    examples = out[out.index("predicted") :].splitlines()[1:]
    assert len(examples) == 8
    assert all(line.split()[2] == line.split()[3] for line in examples)


def test_json_is_all_of_stdout(tiny: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "rgcn", tiny, "--seeds", "3", "--seed", "5", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["seeds"] == [5, 6, 7]
    assert result["test_accuracy"] == [1, 1, 1]
    assert result["n_relations"] == 1
    assert result["settings"]["epochs"] == 50
    # Rows of the first table: 12 to the hubs, 2 back from them, 14 to themselves; times 16.
    # The second layer has 3 blocks of 16 by 2.
    assert result["n_params"] == (12 + 2 + 14) * 16 + 3 * 16 * 2
    assert len(result["examples"]) == 8


def test_no_epochs_is_an_untrained_model(tiny: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "rgcn", tiny, "--epochs", "0", "--seeds", "1"]) == 0
    assert "time per epoch   -\n" in capsys.readouterr().out


def test_plot_is_written(tiny: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib", reason="needs the package matplotlib (extra `demo`)")
    target = tmp_path / "curves.png"
    assert main(["train", "rgcn", tiny, "--seeds", "2", "--plot", str(target)]) == 0
    assert target.read_bytes().startswith(b"\x89PNG")


BAD = {
    "no command": ([], "command"),
    "unknown command": (["trian"], "invalid choice: 'trian'"),
    "missing file": (["train", "rgcn", "no.npz"], "no.npz: no such file"),
    "not an archive": (["train", "rgcn", __file__], "is not an .npz archive"),
    "epochs": (["train", "rgcn", "--epochs", "-1"], "got -1, expected at least 0"),
    "seeds": (["train", "rgcn", "--seeds", "0"], "got 0, expected at least 1"),
    "hidden": (["train", "rgcn", "--hidden", "many"], "got 'many', expected a whole number"),
    "lr": (["train", "rgcn", "--lr", "nan"], "got nan, expected a finite number, at least 0"),
    "l2": (["train", "rgcn", "--l2", "x"], "got 'x', expected a number"),
    "device": (["train", "rgcn", "--device", "tpu"], "'tpu'"),
    "dtype": (["train", "rgcn", "--dtype", "float16"], "'float16'"),
    "option": (["train", "rgcn", "--epoch-count", "3"], "--epoch-count"),
}


@pytest.mark.parametrize(("argv", "words"), BAD.values(), ids=BAD)
def test_bad_input_is_one_line_and_status_2(
    argv: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        status = main(argv)
    except SystemExit as exit:
        status = exit.code
    out, err = capsys.readouterr()
    assert status == 2
    assert out == ""
    assert words in err
    assert err.startswith("edgegrad")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--plot", "curves.doc"], "unknown kind of picture"),
        (["--plot", "no/such/curves.png"], "no such folder no/such"),
        (["--lr", "1e30"], "the loss is nan"),
        (["--hidden", str(10**14)], "not enough memory"),
    ],
)
def test_bad_values_are_one_line_and_status_2(
    argv: list[str], words: str, tiny: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if "--plot" in argv:
        pytest.importorskip("matplotlib", reason="needs the package matplotlib (extra `demo`)")
    assert main(["train", "rgcn", tiny, *argv]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert words in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("module", "argv"), [("matplotlib.figure", ["--plot", "c.png"]), ("countryinfo", [])]
)
def test_missing_package_names_the_command(
    module: str,
    argv: list[str],
    tiny: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    assert main(["train", "rgcn", *([tiny] if argv else []), *argv]) == 2
    assert 'pip install "edgegrad[demo]"\n' in capsys.readouterr().err


def test_missing_cupy_names_the_command(
    tiny: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Without the cache: another test may have had a CuPy.
    monkeypatch.setattr(cuda, "cupy", cuda.cupy.__wrapped__)
    monkeypatch.setitem(sys.modules, "cupy", None)
    assert main(["train", "rgcn", tiny, "--device", "cuda"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "CuPy cannot be imported" in err
    assert "edgegrad[cuda12]" in err
    assert err.count("\n") == 1


def test_version_and_info(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit:
        main(["--version"])
    assert exit.value.code == 0
    assert capsys.readouterr().out.startswith("edgegrad ")
    assert main(["info"]) == 0
    assert capsys.readouterr().out


def run_in_shell(tail: str, tiny: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"}
    environment["PYTHONIOENCODING"] = "ascii"
    command = f"{sys.executable} -m edgegrad.cli train rgcn {tiny} --seeds 1 --epochs 2 {tail}"
    return subprocess.run(command, shell=True, env=environment, capture_output=True, text=True)


def test_name_that_the_terminal_cannot_show(tiny: str) -> None:
    done = run_in_shell("", tiny)
    assert (done.returncode, done.stderr) == (0, "")
    assert "?dd" in done.stdout


def test_reader_that_leaves_early(tiny: str) -> None:
    assert run_in_shell("| true", tiny).stderr == ""
