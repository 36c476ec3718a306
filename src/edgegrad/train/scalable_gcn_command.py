"""The command ``edgegrad train scalable-gcn``."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from edgegrad import from_coo, partition
from edgegrad.datasets import DataError, NodeGraph, country_graph, load_nodes
from edgegrad.partitioning import METHODS, NEIGHBOURS
from edgegrad.train import plot
from edgegrad.train.device import Device
from edgegrad.train.options import add_count, add_number, add_run, add_training, probability
from edgegrad.train.progress import progress
from edgegrad.train.scalable_gcn import GRADIENTS, MODELS, ScalableGCN, Settings
from edgegrad.train.scalable_gcn_fit import Report, Run, fit

HELP = "train a GCN or SAGE on mini-batches with stores of past rows and gradients"
DESCRIPTION = """Train a GCN or SAGE of any depth on mini-batches that read their neighbours' rows
from a store and leave the neighbours' gradients in it (Euler's ScalableGCN), with nothing but the
operators of edgegrad, explicit gradients and Adam. Evaluation is exact, on the whole graph. Without
DATA: the countries of the world (package countryinfo), whose continent is to be told. The defaults
are those of Kipf and Welling 2017 for Cora, CiteSeer and PubMed."""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of this command."""
    add = parser.add_argument
    add("data", nargs="?", help="an .npz archive in the layout of the Planetoid sets")
    add("--model", choices=MODELS, default="gcn", help="(%(default)s)")
    add_count(parser, "--layers", 1, 2, "layers")
    add_count(parser, "--hidden", 1, 16, "hidden width")
    add_number(parser, "--dropout", 0.5, "share of a layer's input that is dropped", probability)
    add_count(parser, "--parts", 1, 8, "batches of an epoch")
    add("--partition", choices=METHODS, default="random", help="how they are cut (%(default)s)")
    add("--neighbours", choices=NEIGHBOURS, default="fresh",
        help="rows of neighbours in the batch: its own, or the store's (%(default)s)")  # fmt: skip
    add("--gradients", choices=GRADIENTS, default="mailbox",
        help="what becomes of the gradients of stored rows (%(default)s)")  # fmt: skip
    add("--half", action="store_true", help="keep stored rows in float16")
    add("--mapped", type=Path, metavar="FOLDER",
        help="keep the stores in mapped files there while the training goes on")  # fmt: skip
    add_training(parser, epochs=200, lr=0.01, l2=5e-4)
    add_run(parser)


def run(args: Namespace) -> int:
    """Train for every seed, then print and draw what came of it."""
    if args.plot:
        plot.check_target(args.plot)
    if not args.epochs:
        raise DataError("--epochs: got 0, expected at least 1")
    if args.half and args.dtype != "float32":
        raise DataError(f"--half: got --dtype {args.dtype}, expected float32 beside it")
    with _folder(args.mapped) as folder:
        report = _train(args, folder)
    if args.plot:
        _draw(report, args.plot)
    print(json.dumps(report.as_dict(), indent=2) if args.json else report.text())
    return 0


@contextmanager
def _folder(parent: Path | None) -> Iterator[Path | None]:
    """Give a folder that vanishes in the end."""
    if parent is None:
        yield None
        return
    try:
        folder = TemporaryDirectory(prefix="edgegrad-stores-", dir=parent)
    except OSError as error:
        raise DataError(f"--mapped {parent}: cannot be written to ({error.strerror})") from None
    with folder as name:
        yield Path(name)


def _train(args: Namespace, folder: Path | None) -> Report:
    device = Device(args.device, args.dtype)
    data = country_graph() if args.data is None else load_nodes(args.data)
    data = replace(data, features=data.features.normalised())
    settings = Settings(
        args.model,
        args.layers,
        args.hidden,
        args.neighbours,
        args.gradients,
        args.dropout,
        args.l2,
        args.half,
    )
    model = ScalableGCN(data, settings, device, _parts(data, args), folder)
    with progress(args.seeds * args.epochs, f"{settings.title} on {data.name}") as advance:

        def on_epoch(run: Run) -> None:
            advance(f"seed {run.seed}, test accuracy {run.accuracy['test'][-1]:.3f}", 1)

        seeds = range(args.seed, args.seed + args.seeds)
        runs = [fit(model, args.epochs, args.lr, seed, on_epoch) for seed in seeds]
    return Report(model, args.epochs, args.lr, args.partition, runs)


def _parts(data: NodeGraph, args: Namespace) -> object:
    src, dst = data.edge_index
    graph = from_coo(src.copy(), dst.copy(), data.n_nodes)
    return partition(graph, args.parts, args.partition, args.seed)


def _draw(report: Report, path: Path) -> None:
    runs, split = report.runs, report.model.split
    title = f"{report.model.settings.title} on {report.model.data.name}"
    accuracies = {part: [run.accuracy[part] for run in runs] for part in split}
    plot.curves(path, title, {"train": [run.loss for run in runs]}, accuracies)
