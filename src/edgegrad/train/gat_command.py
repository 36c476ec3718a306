"""The command ``edgegrad train gat``."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import fields, replace

from edgegrad.datasets import NodeGraph, digits, load_nodes
from edgegrad.train.command import train
from edgegrad.train.gat import GAT, TITLES, Settings
from edgegrad.train.options import add_count, add_number, add_run, probability

HELP = "train a GAT or GATv2 to tell the class of a node"
DESCRIPTION = """Train a two-layer GAT (Velickovic et al. 2018) or GATv2 (Brody et al. 2022) with
nothing but the operators of edgegrad, explicit gradients and Adam, and report the accuracy on nodes
it did not learn from. Without DATA: handwritten digits (package scikit-learn), each an image that
knows the ten most like it, twenty of each digit being known.
The defaults are the paper's settings for Cora and CiteSeer, on the digits with fewer and larger
steps; those for PubMed are --out-heads 8 --lr 0.01 --l2 1e-3."""
PAPER = Settings()
DIGITS = Settings(epochs=100, lr=0.01)  # the demonstration is to be over soon


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of this command."""
    add = parser.add_argument
    add("data", nargs="?", help="an .npz archive of edges, features and classes")
    add("--model", choices=TITLES, default=PAPER.model, help="(%(default)s)")
    add_count(parser, "--heads", 1, PAPER.heads, "heads of the first layer, side by side")
    add_count(parser, "--hidden", 1, PAPER.hidden, "width of each of them")
    add_count(parser, "--out-heads", 1, PAPER.out_heads, "heads of the second layer, averaged")
    add("--raw", action="store_true", help="do not divide each node's features by their sum")
    add_count(parser, "--epochs", 0, None, f"full-batch steps, at most {_defaults('epochs')}")
    help = "stop after N epochs without a better loss or accuracy on the validation nodes"
    add_count(parser, "--patience", 1, PAPER.patience, help)
    add_number(parser, "--lr", None, f"learning rate of Adam {_defaults('lr')}")
    add_number(parser, "--l2", PAPER.l2, "weight decay")
    add_number(parser, "--dropout", PAPER.dropout, "of inputs and of attention", probability)
    add_run(parser)


def run(args: Namespace) -> int:
    """Train for every seed and report."""

    def data() -> NodeGraph:
        return digits() if args.data is None else load_nodes(args.data)

    given = {f.name: getattr(args, f.name) for f in fields(Settings)}
    given = {name: value for name, value in given.items() if value is not None}
    return train(args, replace(DIGITS if args.data is None else PAPER, **given), data, GAT)


def _defaults(name: str) -> str:
    return f"({getattr(PAPER, name):g}; on the digits {getattr(DIGITS, name):g})"
