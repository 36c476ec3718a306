"""The checked-in table of what every kernel takes on every architecture, one line each."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from edgegrad import operators
from edgegrad.backends import cuda

from . import gate, nvrtc
from .gate import Row

FILE = Path(__file__).with_name("budget.json")
COLUMNS = [f.name for f in dataclasses.fields(Row)]
BATCH = 24
UPDATE = "python -m tests.nvrtc.update"

Table = Mapping[str, Row]


def sources() -> dict[str, list[str]]:
    """Return the kernels that plans can ask for, by source file."""
    found: dict[str, list[str]] = {}
    for source, kernel in operators.kernels():
        found.setdefault(source, []).append(kernel)
    return found


def batches() -> list[tuple[str, tuple[str, ...]]]:
    """Cut the kernels of each source into programs of a few seconds, to share among processes."""
    return [
        (source, tuple(kernels[i : i + BATCH]))
        for source, kernels in sources().items()
        for i in range(0, len(kernels), BATCH)
    ]


def name_of(source: str, kernel: str, arch: int) -> str:
    return f"{source} {kernel} sm_{arch}"


def names() -> Iterator[str]:
    """Yield the name of every line, in the order of the file."""
    for source, kernels in sources().items():
        for kernel in kernels:
            yield from (name_of(source, kernel, arch) for arch in nvrtc.ARCHITECTURES)


def measure(source: str, kernels: Iterable[str], arch: int) -> tuple[dict[str, Row], list[str]]:
    """Return the lines of `kernels` on one architecture, and what is wrong with them."""
    code = (cuda.KERNELS / source).read_text()
    measured, problems = gate.measure(code, source, kernels, arch, cuda.options())
    rows = {name_of(source, m.kernel, arch): m.row for m in measured}
    return rows, [*problems, *(fault for m in measured for fault in m.faults())]


def differences(measured: Table, budget: Table) -> list[str]:
    """Say in which lines `measured` is not what `budget` has."""
    found = []
    for name, row in measured.items():
        if name not in budget:
            found.append(f"{name} is not in {FILE.name}")
            continue
        pairs = zip(
            COLUMNS, dataclasses.astuple(budget[name]), dataclasses.astuple(row), strict=True
        )
        changed = ", ".join(f"{c} {old} -> {new}" for c, old, new in pairs if old != new)
        if changed:
            found.append(f"{name}: {changed}")
    return found


def read(path: Path = FILE) -> tuple[str, dict[str, Row]]:
    """Return the NVRTC version that the budget is for, and its lines."""
    table = json.loads(path.read_text())
    if table["columns"] != COLUMNS:
        raise ValueError(f"{path.name}: columns {table['columns']}, expected {COLUMNS}: {UPDATE}")
    return table["nvrtc"], {name: Row(*values) for name, values in table["kernels"].items()}


def digest(source: str) -> str:
    """Hash all that decides what the compiler makes of a source."""
    options = [o for o in cuda.options() if not o.startswith("-I")]
    parts = ((cuda.KERNELS / source).read_text(), *options, str(nvrtc.version()))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


@functools.cache
def unchanged(source: str) -> bool:
    """Whether the budget was measured from this very source, by the compiler that is installed."""
    return json.loads(FILE.read_text())["sources"].get(source) == digest(source)


def write(table: Table, path: Path = FILE) -> None:
    """Write `table` so that a change of one kernel on one architecture is a change of one line."""
    lines = [
        f"    {json.dumps(name)}: {json.dumps(dataclasses.astuple(row))}"
        for name, row in table.items()
    ]
    measured_from = {source: digest(source) for source in sources()}
    head = f'{{\n  "nvrtc": {json.dumps(nvrtc.VERSION)},\n  "columns": {json.dumps(COLUMNS)},\n'
    head += f'  "sources": {json.dumps(measured_from, indent=4)[:-1]}  }},\n'
    path.write_text(head + '  "kernels": {\n' + ",\n".join(lines) + "\n  }\n}\n")
