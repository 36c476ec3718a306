"""Measure every kernel anew and write the budget: `python -m tests.nvrtc.update`.

A person reads the difference of `budget.json` before it is committed; a kernel with a fault that
no budget excuses is not written.
"""

from __future__ import annotations

import sys
from concurrent.futures import ProcessPoolExecutor

from . import budget, nvrtc


def main() -> int:
    if reason := nvrtc.missing():
        print(reason, file=sys.stderr)
        return 1
    if nvrtc.version() != nvrtc.VERSION:
        print(f"NVRTC is {nvrtc.version()}, expected {nvrtc.VERSION}", file=sys.stderr)
        return 1
    jobs = [(*batch, arch) for batch in budget.batches() for arch in nvrtc.ARCHITECTURES]
    with ProcessPoolExecutor() as pool:
        results = list(pool.map(budget.measure, *zip(*jobs, strict=True)))
    rows = {name: row for measured, _ in results for name, row in measured.items()}
    problems = [problem for _, found in results for problem in found]
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems:
        return 1
    _, old = budget.read() if budget.FILE.exists() else ("", {})
    for line in budget.differences(rows, old):
        print(line)
    budget.write({name: rows[name] for name in budget.names()})
    print(f"{budget.FILE.name}: {len(rows)} lines")
    return 0


if __name__ == "__main__":
    sys.exit(main())
