"""Compare every operator, forward and backward, with scipy.sparse and dense float64 products.

    python scripts/check_against_scipy.py [--brief] [--device host|simt|cuda] [--help]

Every function is called with every combination of its options, on outputs filled with NaN. Errors
are set against the most that rounding explains. Oracles, graphs and bounds are those of tests/.
Exit status: 0 all is within bounds, 1 something is not, 2 nothing was checked.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import math
import os
import signal
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

PROG = "check_against_scipy"
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
try:
    import numpy as np

    import devices
    import edgegrad
    import graphs
    import reference
    import tolerances
    from edgegrad.operator import HALVES
except ModuleNotFoundError as missing:
    print(f"{PROG}: no module {missing.name}: pip install '.[demo]'", file=sys.stderr)
    raise SystemExit(2) from None

DEVICES = ("host", "simt", "cuda")
DTYPES = {str(T): T for T in tolerances.FLOATS}
BRIEF_DTYPES = ("bfloat16", "float32")
BRIEF_GRAPHS = ("empty", "star_hub", "power_law", "bipartite", "multi_edge")
MOST_DETAILS = 10
Task = tuple[str, str, "reference.Case"]  # graph, dtype, call
make_graph = functools.cache(graphs.make)


def open_device(name: str) -> Any:
    """Return where the calls run; RuntimeError says why it cannot be."""
    if name == "host":
        return devices.Host()
    if name == "simt":
        import simt
        from simt import toolchain

        toolchain.call(toolchain.compiler(), "--version")  # raises if there is no compiler
        simt.install(SimpleNamespace(setattr=setattr))
        return devices.Simt()
    if reason := devices.missing_gpu():
        raise RuntimeError(reason)
    return devices.Cuda()


@dataclass
class Row:
    """All calls of a function on one graph in one dtype, and the worst of them."""

    operator: str
    graph: str
    dtype: str
    calls: int = 0
    worst: float = 0.0  # largest error over its bound
    worst_call: str = ""
    raised: str = ""  # by the first call that did

    @property
    def ok(self) -> bool:
        return not self.raised and self.worst <= 1

    def as_dict(self) -> dict[str, Any]:
        """Give plain types; `worst` is None where a result should be finite and is not."""
        worst = self.worst if math.isfinite(self.worst) else None
        return {**asdict(self), "worst": worst, "ok": self.ok}


def function_name(case: reference.Case) -> str:
    return f"{case.op.name}_{case.half}"


def select(names: Sequence[str], dtypes: Sequence[str], parts: Sequence[str]) -> list[Task]:
    """List what to do on each graph, for functions with one of `parts` in their name."""
    return [
        (name, dtype, case)
        for name in names
        for dtype, case in itertools.product(dtypes, reference.cases(make_graph(name)))
        if any(part in function_name(case) for part in parts)
    ]


def variants(case: reference.Case, dtype: str, brief: bool) -> list[tuple[Any, bool]]:
    """List the dtypes of ids, each with weights like the features and, beside half, in float32."""
    if brief:
        return [(np.int32, False)]
    has_companion = any(a.dtype.isalpha() and a.dtype != "T" for a in case.args)
    as_float = (False, True) if has_companion and dtype in HALVES else (False,)
    return list(itertools.product((np.int32, np.int64), as_float))


def check(device: Any, todo: Sequence[Task], brief: bool) -> list[Row]:
    """Make all calls; return a row per function, graph and dtype."""
    rows: dict[tuple[str, str, str], Row] = {}
    for name, dtype, case in watched(todo):
        key = function_name(case), name, dtype
        row = rows.setdefault(key, Row(*key))
        for index, as_float in variants(case, dtype, brief):
            measure(row, case, make_graph(name), device, DTYPES[dtype], index, as_float)
    operators = [row.operator for row in rows.values()]
    return sorted(rows.values(), key=lambda row: operators.index(row.operator))


def watched(todo: Sequence[Task]) -> Iterable[Task]:
    """Show a bar while `todo` is gone through, where there are a terminal and rich."""
    if not sys.stderr.isatty() or find_spec("rich") is None:
        return todo
    from rich.console import Console
    from rich.progress import track

    return track(todo, "checking", console=Console(stderr=True), transient=True)


def measure(row: Row, case: reference.Case, *how: Any) -> None:
    """Make a call and keep its error if it is the worst of the row."""
    row.calls += 1
    try:
        worst = reference.run(case, *how).worst()
    except Exception as error:
        # One operator that raises must not hide what the others do.
        words = " ".join(f"{case.name}: {type(error).__name__}: {error}".split())
        row.raised = row.raised or words
        return
    if worst > row.worst or not row.worst_call:
        row.worst, row.worst_call = worst, case.name


HEADER = ("operator", "graph", "dtype", "calls", "error/bound", "ok")


def table(rows: Sequence[Row]) -> list[str]:
    """Set the rows below their header."""
    cells: list[tuple[str, ...]] = [HEADER]
    for row in rows:
        worst = "raised" if row.raised else f"{row.worst:.3g}"
        verdict = "ok" if row.ok else "FAILED"
        cells.append((row.operator, row.graph, row.dtype, str(row.calls), worst, verdict))
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    line = "  ".join(f"{{:{a}{w}}}" for a, w in zip("<<<>><", widths, strict=True))
    return [line.format(*c).rstrip() for c in cells]


def closing(rows: Sequence[Row], device: str, seconds: float) -> list[str]:
    """Say what failed and how, and sum up."""
    failed = [row for row in rows if not row.ok]
    details = []
    for row in failed[:MOST_DETAILS]:
        why = row.raised or f"{row.worst_call}: error {row.worst:.3g} times its bound"
        details.append(f"{row.graph}, {row.dtype}: {why}")
    details += [f"and {len(failed) - MOST_DETAILS} rows more"] if failed[MOST_DETAILS:] else []
    calls = sum(row.calls for row in rows)
    result = f"{len(failed)} of {len(rows)} rows FAILED" if failed else "all within their bounds"
    return ["", *details, f"{calls:,} calls on {device} in {seconds:.1f} s: {result}"]


def listing() -> list[str]:
    """Name the graphs and the functions."""
    names = dict.fromkeys(function_name(case) for *_, case in select(graphs.NAMES, [""], [""]))
    return ["graphs", *(f"  {n}" for n in graphs.NAMES), "functions", *(f"  {n}" for n in names)]


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        # One line says what is wrong; the whole usage would push it off the screen.
        self.exit(2, f"{self.prog}: {' '.join(message.split())}\n")


def make_parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog=PROG,
        description="Compare every operator with scipy.sparse and dense float64 products on named "
        "graphs. Exit status 1 if an error is above its bound.",
    )
    add = parser.add_argument
    add("--device", choices=DEVICES, default="host", help="simt: the CUDA sources, on the CPU")
    add("--dtype", nargs="+", choices=DTYPES, metavar="T", help=f"of {' '.join(DTYPES)}")
    add("--ops", nargs="+", default=[""], metavar="PART", help="functions with this in the name")
    add("--graphs", nargs="+", choices=graphs.NAMES, metavar="NAME", help="see --list")
    add("--json", metavar="FILE", help="write the rows to FILE; with - to stdout, and no table")
    add("--brief", action="store_true", help="a few graphs and dtypes, int32 ids")
    add("--list", action="store_true", help="list the graphs and the functions")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the check; return the exit status."""
    args = (parser := make_parser()).parse_args(argv)
    if args.list:
        print(*listing(), sep="\n")
        return 0
    names = args.graphs or (BRIEF_GRAPHS if args.brief else graphs.NAMES)
    dtypes = args.dtype or (BRIEF_DTYPES if args.brief else tuple(DTYPES))
    todo = select(names, dtypes, args.ops)
    if not todo:
        parser.error(f"--ops {' '.join(args.ops)}: nothing has that in its name; see --list")
    if args.json not in (None, "-") and not can_be_written(Path(args.json)):
        parser.error(f"--json {args.json}: no file can be written there")
    try:
        device = open_device(args.device)
    except RuntimeError as error:
        parser.error(f"--device {args.device}: {error}")
    start = time.perf_counter()
    rows = check(device, todo, args.brief)
    report(rows, args.device, time.perf_counter() - start, args.json)
    return 0 if all(row.ok for row in rows) else 1


def can_be_written(file: Path) -> bool:
    place = file if file.exists() else file.absolute().parent
    return not file.is_dir() and os.access(place, os.W_OK)


def report(rows: Sequence[Row], device: str, seconds: float, path: str | None) -> None:
    """Print the table and write the JSON, or print the JSON alone."""
    data = {"edgegrad": edgegrad.__version__, "device": device, "seconds": round(seconds, 3)}
    text = json.dumps({**data, "rows": [r.as_dict() for r in rows]}, indent=1, allow_nan=False)
    if path == "-":
        return print(text)
    print(*table(rows), *closing(rows, device, seconds), sep="\n")
    if path:
        Path(path).write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` may have read enough
    try:
        raise SystemExit(main())
    except KeyboardInterrupt:
        raise SystemExit(130) from None
