"""Medians of interleaved calls, and the memory a call needs beyond what is there already."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

Calls = Mapping[str, Callable[[], object]]


def milliseconds(calls: Calls, rounds: int = 7) -> dict[str, float]:
    """Median time of each call; rounds take turns, so that a drifting machine hits all alike."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            times[name].append(1e3 * (time.perf_counter() - start))
    return {name: float(np.median(t)) for name, t in times.items()}


def extra_megabytes(call: Callable[[], object]) -> float:
    """Peak of resident memory during the call over what was resident before (Linux)."""
    forget_peak()
    before = memory("VmRSS")
    call()
    return memory("VmHWM") - before


def forget_peak() -> None:
    """Let the peak of resident memory start anew."""
    Path("/proc/self/clear_refs").write_text("5")


def memory(field: str) -> float:
    """Read a figure of this process from the kernel, in MiB; NaN where it has none."""
    status = Path("/proc/self/status").read_text()
    match = re.search(rf"{field}:\s+(\d+) kB", status)
    return int(match.group(1)) / 1024 if match else float("nan")


def in_a_process(*argv: str) -> dict[str, Any]:
    """Run Python in another process, with one thread; return the JSON that it prints.

    On small graphs a second thread gains little, and loses much where others use the machine.
    """
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, *argv]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def stream_bandwidth() -> float:
    """Bytes per second of a copy far larger than the cache; bytes count when read and written."""
    source = np.ones(1 << 25)
    target = np.empty_like(source)
    ms = milliseconds({"copy": lambda: np.copyto(target, source)}, rounds=5)["copy"]
    return 2 * source.nbytes / ms * 1e3
