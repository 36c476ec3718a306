"""Write docs/operators.md from the declarations of the operators and their docstrings.

    python scripts/operators_table.py [--check]

With --check nothing is written; exit status 1 says that the file is out of date.
"""

from __future__ import annotations

import argparse
import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import edgegrad.operators
from edgegrad.operator import BATCH, FLOATS, Arg, Operator
from edgegrad.operators.history_declarations import STORE_OPERATORS

PROG = "operators_table"
TARGET = Path(__file__).resolve().parents[1] / "docs" / "operators.md"
ITEM = re.compile(r"^(\w+) : .*$((?:\n    .*)+)", re.MULTILINE)

HEAD = f"""\
# Operators

Written by `scripts/operators_table.py` from the declarations and the docstrings; to change this
page, change those.

**T** is the feature type of a call: {", ".join(FLOATS)}.
**A** is its accumulator: float64 for float64, else float32. Other names in capitals are T, or
float32 beside half types, alike for all arrays of that name. Of dtypes with | between, any will do.
Arrays in *italics* may be None; a gradient that is None is not computed.
What a call writes it writes whole, and never adds to what was there.
`{BATCH}` is an axis that all arrays which have it are given with, or all without.
"""

STORES = """\
Stores of past rows and gradients, which training on mini-batches reads in the place of neighbours
outside the batch. These are steps of an algorithm: one function each, without graph and derivative.
"""


def function(op: Operator, half: str) -> Callable[..., None]:
    return getattr(edgegrad.operators, op.functions[half])


def halves(op: Operator) -> tuple[str, ...]:
    return ("fwd", "bwd") if any(a.grad for a in op.inputs) else ("fwd",)


def docstring(op: Operator, half: str) -> str:
    return inspect.getdoc(function(op, half)) or ""


def determinism(op: Operator) -> str:
    """Return what the docstring of forward, or of the one function, promises."""
    found = re.search(r"Determinism: ([^.]+)\.", docstring(op, "fwd"))
    if not found:
        name = op.functions["fwd"]
        raise LookupError(f"{name}: the docstring has no sentence 'Determinism: ...'")
    return " ".join(found[1].split())


def graphs(op: Operator) -> str:
    return ", ".join(f"`{kind}_int32/int64`" for kind in op.graphs) or "none"


def cited(source: str) -> str:
    """Link what has an arXiv number."""
    return re.sub(r"arXiv:(\d+\.\d+)", r"[arXiv:\1](https://arxiv.org/abs/\1)", source)


def row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(c.replace('|', chr(92) + '|') for c in cells)} |"


def table(header: Sequence[str], rows: Iterator[Sequence[str]]) -> Iterator[str]:
    yield row(header)
    yield row(["---"] * len(header))
    yield from map(row, rows)


def overview(operators: Sequence[Operator]) -> Iterator[str]:
    def cells(op: Operator) -> tuple[str, ...]:
        batched = any(BATCH in a.axes for a in op.fwd)
        grads = ", ".join(f"`{a.name}`" for a in op.inputs if a.grad)
        batches = "yes" if batched else "no"
        return linked(op), graphs(op), grads or "none", batches, determinism(op)

    header = ("operator", "graphs", "gradients with respect to", "batched", "determinism")
    return table(header, map(cells, operators))


def overview_of_stores(operators: Sequence[Operator]) -> Iterator[str]:
    def cells(op: Operator) -> tuple[str, ...]:
        changed = ", ".join(f"`{a.name}`" for a in op.fwd if a.changed)
        return linked(op), summary(op), changed or "nothing", determinism(op)

    return table(("operator", "what it does", "changes", "determinism"), map(cells, operators))


def linked(op: Operator) -> str:
    return f"[`{op.name}`](#{op.name})"


def summary(op: Operator) -> str:
    return docstring(op, "fwd").partition("\n")[0]


def arrays(op: Operator, half: str) -> Iterator[str]:
    """Set the arrays of one half, in the order of the declaration."""
    words = described(op, half)

    def cells(a: Arg) -> tuple[str, ...]:
        name = f"*{a.name}*" if a.optional else a.name
        return name, f"`({', '.join(a.axes)})`", a.dtype, use(a), words.get(a.name, "")

    return table(("array", "axes", "dtype", "", "what"), map(cells, getattr(op, half)))


def use(a: Arg) -> str:
    return "changed" if a.changed else "written" if a.written else "read"


def described(op: Operator, half: str) -> dict[str, str]:
    """Return what the docstring says of each parameter."""
    return {name: _words(text) for name, text in ITEM.findall(docstring(op, half))}


def _words(text: str) -> str:
    text = " ".join(text.split()).replace("``", "`")
    text = re.sub(r"^(Written|Changed in place|Read)[;,.] ", "", text)  # the table says so
    return text[:1].upper() + text[1:]


def section(op: Operator) -> Iterator[str]:
    yield from (f"## {op.name}", "")
    yield from (summary(op), "")
    for half in halves(op):
        signature = inspect.signature(function(op, half), eval_str=False)
        parameters = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
        call = str(signature.replace(parameters=parameters, return_annotation=signature.empty))
        yield from ("```python", *_wrapped(op.functions[half], call), "```", "")
        yield from (*arrays(op, half), "")
    known = {a.name for a in op.fwd} | {"graph", "stream_id"}
    options = {k: v for k, v in described(op, "fwd").items() if k not in known}
    yield from (f"- `{name}`: {words}" for name, words in options.items())
    yield from () if op.single else (f"- Graphs: {graphs(op)}",)
    yield f"- Determinism: {determinism(op)}"
    yield f"- Scratch: {op.scratch}"
    yield from ([f"- Source: {cited(op.source)}"] if op.source else [])
    yield ""


def _wrapped(name: str, call: str, width: int = 100) -> list[str]:
    """Set a call as the formatter does, which also sets the code in this page."""
    whole, arguments = f"{name}{call}", call[1:-1]
    if len(whole) <= width:
        return [whole]
    if len(arguments) + 4 <= width:
        return [f"{name}(", f"    {arguments}", ")"]
    return [f"{name}(", *(f"    {argument}," for argument in arguments.split(", ")), ")"]


def page(operators: Sequence[Operator], stores: Sequence[Operator]) -> str:
    """Return the whole page."""
    lines = [HEAD, *overview(operators), "", STORES, *overview_of_stores(stores), ""]
    for op in (*operators, *stores):
        lines += section(op)
    return "\n".join(lines).rstrip() + "\n"


def main(argv: Sequence[str] | None = None, target: Path = TARGET) -> int:
    """Write the page or compare it with the file; return the exit status."""
    parser = argparse.ArgumentParser(prog=PROG, description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="only say if it is out of date")
    check = parser.parse_args(argv).check
    text = page(edgegrad.operators.OPERATORS, STORE_OPERATORS)
    before = target.read_text(encoding="utf-8") if target.exists() else ""
    if check and text != before:
        print(f"{target.name} is out of date: run python scripts/operators_table.py")
    elif text != before:
        target.write_text(text, encoding="utf-8")
        print(f"wrote {target}")
    return int(check and text != before)


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except LookupError as error:
        raise SystemExit(f"{PROG}: {error}") from None
