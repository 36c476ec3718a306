"""`edgegrad train scalable-gcn`: what it prints, what it refuses, and that it learns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edgegrad import cli


def _archive(path: Path, **changed: Any) -> Path:
    """Two rings of nodes with noisy features: which ring, is the class."""
    rng, n = np.random.default_rng(0), 60
    node = np.arange(n)
    ring = (node + 2) % n  # even nodes with even ones, odd with odd
    arrays = {
        "edge_index": np.stack([np.append(node, ring), np.append(ring, node)]),
        "x": rng.random((n, 6)) + (node[:, None] % 2 == np.arange(6) % 2),
        "y": node % 2,
        "train_idx": node[:20],
        "test_idx": node[20:],
        **changed,
    }
    np.savez(path, **{k: v for k, v in arrays.items() if v is not None})
    return path


def _run(*argv: Any, capsys: pytest.CaptureFixture[str]) -> str:
    assert cli.main(["train", "scalable-gcn", *map(str, argv)]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("gradients", ["mailbox", "snapshot", "none"])
@pytest.mark.parametrize("neighbours", ["fresh", "store"])
def test_it_learns(
    tmp_path: Path, gradients: str, neighbours: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = _archive(tmp_path / "rings.npz")
    options = ("--layers", 3, "--parts", 4, "--epochs", 30, "--lr", 0.05, "--seeds", 2, "--json")
    styles = ("--gradients", gradients, "--neighbours", neighbours)
    result = json.loads(_run(path, *options, *styles, capsys=capsys))
    assert result["test_accuracy_mean"] > 0.9
    assert result["n_parts"] == 4
    assert result["settings"]["gradients"] == gradients
    again = json.loads(_run(path, *options, *styles, capsys=capsys))
    assert again["train_loss"] == result["train_loss"]


def test_sage_learns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = _archive(tmp_path / "rings.npz")
    options = ("--layers", 3, "--parts", 4, "--epochs", 30, "--lr", 0.05, "--seeds", 2)
    result = json.loads(_run(path, *options, "--model", "sage", "--json", capsys=capsys))
    assert result["test_accuracy_mean"] > 0.9
    assert result["settings"]["model"] == "sage"


def test_where_stores_are_and_how_wide(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, folder = _archive(tmp_path / "rings.npz"), tmp_path / "stores"
    folder.mkdir()
    results = [
        json.loads(_run(path, "--epochs", 5, "--seeds", 2, "--json", *options, capsys=capsys))
        for options in ((), ("--mapped", folder), ("--half",))
    ]
    plain, mapped, half = results
    assert mapped["train_loss"] == plain["train_loss"]
    assert (plain["stores_mapped"], mapped["stores_mapped"]) == (False, True)
    assert not any(folder.iterdir())
    ids, rows, grads = (60 * n for n in (8, 4 * 16, 4 * 16))
    assert plain["store_bytes"] == ids + rows + grads
    assert half["store_bytes"] == ids + rows // 2 + grads


def test_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = _archive(tmp_path / "rings.npz")
    text = _run(path, "--epochs", 2, "--seeds", 1, "--partition", "contiguous", capsys=capsys)
    for words in ("ScalableGCN, node classification on rings", "8 (contiguous)", "peak memory"):
        assert words in text


def test_the_plot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    path, picture = _archive(tmp_path / "rings.npz"), tmp_path / "curves.png"
    _run(path, "--epochs", 3, "--seeds", 2, "--plot", picture, capsys=capsys)
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_sparse_features_are_those_of_the_dense_array(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    x = np.random.default_rng(1).random((60, 6)) * (np.arange(6) % 3 > 0)
    rows, columns = np.nonzero(x)
    sparse = {
        "x": None,
        "x_indptr": np.searchsorted(rows, np.arange(61)),
        "x_indices": columns,
        "x_data": x[rows, columns],
        "x_shape": np.array(x.shape),
    }
    losses = []
    for name, arrays in (("a", {"x": x}), ("b", sparse)):
        path = _archive(tmp_path / f"{name}.npz", **arrays)
        out = _run(path, "--epochs", 3, "--seeds", 1, "--json", capsys=capsys)
        losses.append(json.loads(out)["train_loss"])
    assert losses[0] == losses[1]


@pytest.mark.parametrize(
    ("text", "options", "arrays"),
    [
        ("array `y` is missing, found edge_index", (), {"y": None}),
        ("`train_idx` names a node whose class is -1", (), {"y": np.full(60, -1)}),
        ("`x` has shape (3, 2) and dtype float64", (), {"x": np.ones((3, 2))}),
        (
            "edge_index reach id 60, expected ids below 60",
            (),
            {"edge_index": np.array([[60], [0]])},
        ),
        ("--dropout: got 1, expected a number below 1", ("--dropout", "1"), {}),
        ("--epochs: got 0, expected at least 1", ("--epochs", "0"), {}),
        ("--half: got --dtype float64, expected float32", ("--half", "--dtype", "float64"), {}),
        ("--mapped nowhere: cannot be written to (No such", ("--mapped", "nowhere"), {}),
    ],
)
def test_mistakes_are_one_line(
    tmp_path: Path,
    text: str,
    options: tuple[str, ...],
    arrays: dict[str, Any],
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = _archive(tmp_path / "rings.npz", **arrays)
    try:
        status = cli.main(["train", "scalable-gcn", str(path), *options])
    except SystemExit as exit:
        status = exit.code
    assert status == 2
    error = capsys.readouterr().err
    assert text in error
    assert error.count("\n") == 1
