"""The command ``edgegrad train rgcn``."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from edgegrad.datasets import EntityGraph, countries, load
from edgegrad.train.command import train
from edgegrad.train.options import add_count, add_run, add_training
from edgegrad.train.rgcn import RGCN, Settings

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
    add_run(parser)


def run(args: Namespace) -> int:
    """Train for every seed and report."""

    def data() -> EntityGraph:
        return countries() if args.data is None else load(args.data)

    settings = Settings(args.hidden, args.bases, args.epochs, args.lr, args.l2)
    return train(args, settings, data, RGCN)
