"""Published results on mini-batches with stores, with Kipf and Welling's settings, nothing tuned.

The whole tables take minutes: docs/history.md has them, and the command.
"""

from __future__ import annotations

import pytest

from training import DATA, train


@pytest.mark.parametrize(
    ("model", "gradients", "least"),
    [("gcn", "mailbox", 0.795), ("gcn", "snapshot", 0.795), ("sage", "mailbox", 0.78)],
)
def test_cora(model: str, gradients: str, least: float) -> None:
    path = DATA / "cora" / "cora.npz"
    if not path.is_file():
        pytest.skip(f"the data set Cora is not at {path} (EDGEGRAD_DATA names the folder)")
    # Few epochs: with 8 batches they are 480 steps. The mean of two seeds deviates by 0.005.
    options = ("--model", model, "--gradients", gradients, "--epochs", "60", "--seeds", "2")
    result = train("scalable-gcn", str(path), *options)
    assert (result["n_nodes"], result["n_edges"], result["n_parts"]) == (2708, 10556, 8)
    assert result["test_accuracy_mean"] >= least
