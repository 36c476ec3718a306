"""The command line: ``edgegrad <command>``."""

from __future__ import annotations

import io
import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import NamedTuple, NoReturn

import edgegrad
from edgegrad.datasets import DataError, MissingPackageError
from edgegrad.train import gat_command, rgcn_command, scalable_gcn_command

USER_ERRORS = (
    DataError,
    MissingPackageError,
    FloatingPointError,  # a training that has left the finite numbers
    edgegrad.ArgumentError,
    edgegrad.BackendError,
)


class Command(NamedTuple):
    """What stands after ``edgegrad``, and the functions behind it."""

    words: str
    help: str
    run: Callable[[Namespace], int]
    add_arguments: Callable[[ArgumentParser], None] = lambda parser: None
    description: str | None = None

    @classmethod
    def of(cls, words: str, module: ModuleType) -> Command:
        """Take what a command's own module says of it."""
        return cls(words, module.HELP, module.run, module.add_arguments, module.DESCRIPTION)


def _info(_: Namespace) -> int:
    edgegrad.show_config()
    return 0


GROUPS = {"train": "train a model on a data set"}
COMMANDS = (
    Command.of("train rgcn", rgcn_command),
    Command.of("train gat", gat_command),
    Command.of("train scalable-gcn", scalable_gcn_command),
    Command("info", "show versions, devices and what is missing", _info),
)


class _Parser(ArgumentParser):
    def error(self, message: str) -> NoReturn:
        # One line says what is wrong; the whole usage would push it off the screen.
        self.exit(2, f"{self.prog}: {message}\n")


def parser() -> ArgumentParser:
    """Build the parser of all commands."""
    root = _Parser(prog="edgegrad", description="Graph operators with explicit gradients.")
    root.add_argument("--version", action="version", version=f"edgegrad {edgegrad.__version__}")
    groups = {"": root.add_subparsers(metavar="command", required=True)}
    for command in COMMANDS:
        group, _, word = command.words.rpartition(" ")
        if group not in groups:
            help = GROUPS[group]
            inner = groups[""].add_parser(group, help=help, description=help)
            groups[group] = inner.add_subparsers(metavar="command", required=True)
        description = command.description or command.help
        leaf = groups[group].add_parser(word, help=command.help, description=description)
        command.add_arguments(leaf)
        leaf.set_defaults(run=command.run, prog=leaf.prog)
    return root


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; a mistake of the user is one line on stderr and exit status 2."""
    args = parser().parse_args(argv)
    for stream in (sys.stdout, sys.stderr):
        # A name the terminal cannot show is no reason to lose the result.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        status = args.run(args)
        sys.stdout.flush()  # else a reader that has left is noticed too late to be dealt with
        return status
    except USER_ERRORS as error:
        return _fail(args.prog, str(error))
    except MemoryError as error:
        return _fail(args.prog, f"not enough memory: {error}")
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read the output has enough; nothing may be written when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _fail(prog: str, message: str) -> int:
    print(f"{prog}: {' '.join(message.split())}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    raise SystemExit(main())
