"""Memory of training by depth: `python scripts/bench/history_memory.py PPI24.NPZ [--plot FILE]`.

Trains ScalableGCN on the 24 graphs of PPI (their topology; the classes are a stand-in) with 2, 4
and 8 layers: in 64 batches with stores in mapped files or in memory, and with the whole graph as
one batch. Each training is a process of its own with one thread; two peaks are told (Linux):

- anonymous: what it can keep in memory or swap only;
- resident: with that the pages of mapped files, which the kernel writes back and drops at need.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from edgegrad import from_coo, partition
from edgegrad.datasets import Features, NodeGraph
from edgegrad.train.device import Device
from edgegrad.train.plot import figure
from edgegrad.train.scalable_gcn import ScalableGCN, Settings
from edgegrad.train.scalable_gcn_fit import fit
from measure import forget_peak, in_a_process, memory

DEPTHS = (2, 4, 8)


class Form(NamedTuple):
    """How the rows of other layers are kept."""

    parts: int = 64
    mapped: bool = False
    half: bool = False
    gradients: str = "mailbox"


FORMS = {
    "stores in mapped files": Form(mapped=True),
    "stores in mapped files, rows in float16": Form(mapped=True, half=True),
    "stores in memory": Form(),
    "stores in memory, rows in float16": Form(half=True),
    "whole graph as one batch": Form(parts=1, gradients="none"),
}


def ppi(path: Path) -> NodeGraph:
    """Read the topology; the class of a node is the first of its gene's labels."""
    a = np.load(path)
    ends = np.stack([a["src"], a["dst"]]).astype(np.int32)
    ends = ends[:, ends[0] != ends[1]]
    gene = a["gene_of_node"]
    bits = np.unpackbits(a["gene_labels"], axis=1)[:, : len(a["label_names"])]
    labels = np.where(bits.any(axis=1), bits.argmax(axis=1), -1)[gene]
    split = np.repeat(a["graph_split"], np.diff(a["graph_ptr"]))
    return NodeGraph(
        name=path.stem,
        edge_index=np.concatenate([ends, ends[::-1]], axis=1),
        features=Features.of(a["gene_motifs"][gene]).normalised(),
        labels=labels,
        class_names=tuple(map(str, a["label_names"])),
        parts={
            part: (labels >= 0) & (split == number) for part, number in (("train", 0), ("test", 2))
        },
    )


class AnonymousPeak:
    """The largest anonymous memory while inside, looked at every millisecond."""

    def __enter__(self) -> AnonymousPeak:
        self.mib, self._over = memory("RssAnon"), threading.Event()
        self._watcher = threading.Thread(target=self._watch)
        self._watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._watcher.join()

    def _watch(self) -> None:
        while not self._over.wait(0.001):
            self.mib = max(self.mib, memory("RssAnon"))


def measured(args: argparse.Namespace) -> dict[str, Any]:
    """Train one model in this process."""
    form, data = FORMS[args.form], ppi(args.data)
    src, dst = (side.copy() for side in data.edge_index)
    parts = partition(from_coo(src, dst, data.n_nodes), form.parts)
    settings = Settings(
        layers=args.layers, hidden=args.hidden, gradients=form.gradients, half=form.half
    )
    with TemporaryDirectory(dir=args.folder) as folder:
        place = Path(folder) if form.mapped else None
        model = ScalableGCN(data, settings, Device("cpu"), parts, place)
        forget_peak()
        before = memory("RssAnon")
        with AnonymousPeak() as peak:
            run = fit(model, args.epochs, args.lr, seed=0)
        return {
            "stores": model.store_bytes / 2**20,
            "before": before,
            "anonymous": peak.mib,
            "resident": memory("VmHWM"),
            "loss": run.loss[-1],
            "seconds": run.seconds / args.epochs,
            "own": max(piece.n_own for piece in model.pieces),
            "pulled": max(len(piece.neighbours) for piece in model.pieces),
        }


def table(results: dict[str, list[dict[str, Any]]]) -> None:
    """Print the numbers in MiB, and how the last depth compares to the first."""
    print("| | layers | stores | anonymous: before, peak | resident | s per epoch |")
    print("| --- | --- | --- | --- | --- | --- |")
    for form, runs in results.items():
        for layers, r in zip(DEPTHS, runs, strict=True):
            peaks = f"{r['before']:.0f}, {r['anonymous']:.0f} | {r['resident']:.0f}"
            print(f"| {form} | {layers} | {r['stores']:.0f} | {peaks} | {r['seconds']:.2f} |")
    print(f"\n| from {DEPTHS[0]} to {DEPTHS[-1]} layers | anonymous | resident | added, MiB |")
    print("| --- | --- | --- | --- |")
    for form, (first, *_, last) in results.items():
        grown = [last[what] / first[what] for what in ("anonymous", "resident")]
        added = [r["anonymous"] - r["before"] for r in (first, last)]
        print(
            f"| {form} | x {grown[0]:.2f} | x {grown[1]:.2f} | {added[0]:.0f} to {added[1]:.0f} |"
        )


def draw(results: dict[str, list[dict[str, Any]]], path: Path) -> None:
    """Draw the peaks by depth."""
    picture = figure()
    axes = picture.subplots()
    for form, runs in results.items():
        (line,) = axes.plot(DEPTHS, [r["anonymous"] for r in runs], "o-", label=form)
        axes.plot(DEPTHS, [r["resident"] for r in runs], "x:", color=line.get_color())
    axes.plot([], [], "o-", color="0.5", label="anonymous memory")
    axes.plot([], [], "x:", color="0.5", label="resident memory, mapped files included")
    axes.set(xlabel="layers", ylabel="peak of the process, MiB", xticks=DEPTHS, ylim=(0, None))
    axes.grid(alpha=0.3)
    axes.legend(edgecolor="none", bbox_to_anchor=(1.02, 1), loc="upper left")
    picture.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("data", type=Path)
    add("--hidden", type=int, default=64)
    add("--epochs", type=int, default=3)
    # Eight layers in 64 batches learn from gradients up to 7 epochs old: larger steps diverge.
    add("--lr", type=float, default=1e-4)
    add("--folder", type=Path, help="where mapped stores are kept; on a disk, not in memory")
    add("--plot", type=Path, help="a picture to write")
    add("--form", choices=FORMS, help="train this alone, in this process")
    add("--layers", type=int, default=DEPTHS[0], help="with --form")
    args = parser.parse_args()
    if args.form:
        print(json.dumps(measured(args)))
        return
    same = (__file__, *sys.argv[1:])
    results = {
        form: [in_a_process(*same, "--form", form, "--layers", str(n)) for n in DEPTHS]
        for form in FORMS
    }
    table(results)
    if args.plot:
        draw(results, args.plot)


if __name__ == "__main__":
    main()
