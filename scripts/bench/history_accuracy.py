"""Accuracy with and without stores: `python scripts/bench/history_accuracy.py FILE.npz ...`.

Trains a GCN of two layers with the settings of `edgegrad train scalable-gcn` on data in the layout
of the Planetoid sets and prints a table: the whole graph as one batch, then batches whose stored
rows get no gradients, those of a mailbox, or those of a snapshot.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from measure import in_a_process

IN_BATCHES = ("--partition", "metis")
FORMS = {
    "full batch": ("--parts", "1", "--partition", "contiguous", "--gradients", "none"),
    "no gradients": (*IN_BATCHES, "--gradients", "none"),
    "mailbox": (*IN_BATCHES, "--gradients", "mailbox"),
    "snapshot": (*IN_BATCHES, "--gradients", "snapshot"),
}


def accuracy(path: Path, form: str, seeds: int, model: str) -> str:
    """Train and return mean and standard deviation of the test accuracy, and time per epoch."""
    options = (*FORMS[form], "--seeds", str(seeds), "--model", model, "--json")
    command = ("-m", "edgegrad.cli", "train", "scalable-gcn", str(path), *options)
    result = in_a_process(*command)
    mean, deviation = result["test_accuracy_mean"], result["test_accuracy_std"]
    return f"{mean:.4f} +- {deviation:.4f} ({result['ms_per_epoch']:.0f} ms)"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("data", type=Path, nargs="+")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--model", default="gcn")
    args = parser.parse_args()
    print(f"| | {' | '.join(FORMS)} |")
    print("| --- |" + " --- |" * len(FORMS))
    for path in args.data:
        cells = [accuracy(path, form, args.seeds, args.model) for form in FORMS]
        print(f"| {path.stem} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
