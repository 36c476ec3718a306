"""The command ``edgegrad train rgcn``."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace

from edgegrad.datasets import countries, load
from edgegrad.train import plot
from edgegrad.train.device import Device
from edgegrad.train.options import add_count, add_training
from edgegrad.train.progress import progress
from edgegrad.train.report import Report
from edgegrad.train.rgcn import RGCN, Run, Settings, fit

HELP = "train an R-GCN to tell the class of an entity"
DESCRIPTION = """Train a two-layer R-GCN (Schlichtkrull et al. 2018) with nothing but the operators
of edgegrad, explicit gradients and Adam, and report the accuracy on entities it did not learn from.
Without DATA: the countries of the world (package countryinfo), whose continent is to be told from
borders, languages, currencies, time zones and calling codes, one in five being known.
The defaults are the paper's settings for AIFB; those for MUTAG are --bases 30 --l2 5e-4."""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument("data", nargs="?", help="an .npz archive of triples and labels")
    add_count(parser, "--hidden", 1, 16, "hidden width")
    add_count(parser, "--bases", 0, 0, "bases of each layer, 0: a matrix for every relation")
    add_training(parser, epochs=50, lr=0.01, l2=0.0)


def run(args: Namespace) -> int:
    """Train for every seed, then print and draw what came of it."""
    if args.plot:
        plot.check_target(args.plot)
    device = Device(args.device, args.dtype)
    data = countries() if args.data is None else load(args.data)
    settings = Settings(args.hidden, args.bases, args.epochs, args.lr, args.l2)
    model = RGCN(data, settings, device)
    with progress(args.seeds * args.epochs, f"R-GCN on {data.name}") as advance:

        def on_epoch(run: Run) -> None:
            advance(f"seed {run.seed}, test accuracy {run.test_accuracy[-1]:.3f}")

        seeds = range(args.seed, args.seed + args.seeds)
        runs = [fit(model, data, settings, seed, on_epoch) for seed in seeds]
    report = Report(data, settings, args.device, args.dtype, model.n_params, runs)
    if args.plot:
        plot.draw(report, args.plot)
    print(json.dumps(report.as_dict(), indent=2) if args.json else report.text())
    return 0
