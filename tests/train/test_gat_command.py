from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from edgegrad.cli import main


@pytest.fixture
def tiny(tmp_path: Path) -> str:
    """Write two rings of twelve nodes; features tell the ring of every third node."""
    ids = np.arange(24, dtype=np.int32)
    ring = ids // 12
    ahead = 12 * ring + (ids + 1) % 12
    x = np.zeros((24, 3), np.float32)
    x[:, 2] = 1
    x[::3, :2] = np.eye(2)[ring[::3]] * 4
    np.savez(
        tmp_path / "tiny.npz",
        edge_index=np.stack([np.r_[ids, ahead], np.r_[ahead, ids]]),
        x=x,
        y=ring.astype(np.int8),
        train_idx=ids[::4],
        val_idx=ids[1::4],
        test_idx=ids[2::4],
        class_names=np.array(["left", "right"]),
    )
    return str(tmp_path / "tiny.npz")


@pytest.mark.parametrize("model", ["gat", "gatv2"])
def test_table_says_what_happened(
    tiny: str, model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["--model", model, "--seeds", "2", "--epochs", "150", "--lr", "0.02"]
    assert main(["train", "gat", tiny, *argv]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert f"{'GAT' if model == 'gat' else 'GATv2'}, node classification on tiny" in out
    for words in (
        "nodes            24\n",
        "edges            48\n",
        "6 to learn from, 6 to stop by, 6 to test on; split of its own",
        "8 heads of 8, then 1, ",
        "at most 150 epochs, patience 100, lr 0.02, l2 0.0005, dropout 0.6",
        "test accuracy    1.0000 +- 0.0000 (min 1.0000, max 1.0000)",
        "majority class   0.5000",
    ):
        assert words in out
    examples = out[out.index("predicted") :].splitlines()[1:]
    assert len(examples) == 6
    assert all(line.split()[2] == line.split()[3] for line in examples)


def test_json_is_all_of_stdout(tiny: str, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["--epochs", "3", "--seeds", "3", "--seed", "5", "--out-heads", "4", "--json"]
    assert main(["train", "gat", tiny, *argv]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["model"] == "GAT"
    assert (result["n_train"], result["n_validation"], result["n_test"]) == (6, 6, 6)
    assert result["seeds"] == [5, 6, 7]
    assert result["epochs"] == [3, 3, 3]
    assert all(0 <= best <= 3 for best in result["best_epoch"])
    assert result["settings"]["out_heads"] == 4
    # Weights, attention and bias of the first layer, then of the second.
    assert result["n_params"] == (3 * 64 + 2 * 64 + 64) + (64 * 8 + 2 * 8 + 2)


def test_plot_is_written_for_runs_of_different_length(
    tiny: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib", reason="needs the package matplotlib (extra `demo`)")
    target = tmp_path / "curves.png"
    argv = ["--seeds", "3", "--patience", "1", "--lr", "1", "--json", "--plot", str(target)]
    assert main(["train", "gat", tiny, *argv]) == 0
    assert len(set(json.loads(capsys.readouterr().out)["epochs"])) > 1
    assert target.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--model", "gcn"], "invalid choice: 'gcn'"),
        (["--heads", "0"], "got 0, expected at least 1"),
        (["--patience", "0"], "got 0, expected at least 1"),
        (["--dropout", "1"], "got 1, expected a number below 1"),
        (["--lr", "1e30"], "the loss is nan"),
        (["--hidden", str(10**14)], "not enough memory"),
    ],
)
def test_bad_input_is_one_line_and_status_2(
    argv: list[str], words: str, tiny: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        status = main(["train", "gat", tiny, *argv])
    except SystemExit as exit:
        status = exit.code
    out, err = capsys.readouterr()
    assert status == 2
    assert out == ""
    assert words in err
    assert err.startswith("edgegrad train gat: ")
    assert err.count("\n") == 1


def test_missing_package_names_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    assert main(["train", "gat"]) == 2
    assert 'scikit-learn: pip install "edgegrad[demo]"\n' in capsys.readouterr().err
