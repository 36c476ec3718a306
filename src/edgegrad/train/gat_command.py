"""The command ``edgegrad train gat``."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from edgegrad.datasets import NodeGraph, digits, load_nodes
from edgegrad.train.command import train
from edgegrad.train.gat import GAT, TITLES, Settings
from edgegrad.train.options import add_count, add_number, add_run, probability

HELP = "train a GAT or GATv2 to tell the class of a node"
DESCRIPTION = """Train a two-layer GAT (Velickovic et al. 2018) or GATv2 (Brody et al. 2022) with
nothing but the operators of edgegrad, explicit gradients and Adam, and report the accuracy on nodes
it did not learn from. Without DATA: handwritten digits (package scikit-learn), each an image that
knows the ten most like it, twenty of each digit being known.
The defaults are the paper's settings for Cora and CiteSeer; those for PubMed are
--out-heads 8 --lr 0.01 --l2 1e-3."""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of this command."""
    default, add = Settings(), parser.add_argument
    add("data", nargs="?", help="an .npz archive of edges, features and classes")
    add("--model", choices=TITLES, default=default.model, help="(%(default)s)")
    add_count(parser, "--heads", 1, default.heads, "heads of the first layer, side by side")
    add_count(parser, "--hidden", 1, default.hidden, "width of each of them")
    add_count(parser, "--out-heads", 1, default.out_heads, "heads of the second layer, averaged")
    add("--raw", action="store_true", help="do not divide each node's features by their sum")
    add_count(parser, "--epochs", 0, default.epochs, "full-batch steps, at most")
    help = "stop after N epochs without a better loss or accuracy on the validation nodes"
    add_count(parser, "--patience", 1, default.patience, help)
    add_number(parser, "--lr", default.lr, "learning rate of Adam")
    add_number(parser, "--l2", default.l2, "weight decay")
    add_number(parser, "--dropout", default.dropout, "of inputs and of attention", probability)
    add_run(parser)


def run(args: Namespace) -> int:
    """Train for every seed and report."""

    def data() -> NodeGraph:
        return digits() if args.data is None else load_nodes(args.data)

    settings = Settings(
        args.model, args.heads, args.hidden, args.out_heads, args.raw, args.epochs,
        args.patience, args.lr, args.l2, args.dropout,
    )  # fmt: skip
    return train(args, settings, data, GAT)
