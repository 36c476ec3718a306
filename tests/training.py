"""Training commands as a user gives them, each in a process of its own, with one thread.

On graphs of this size a second thread gains little, and loses much where another test has the other
core.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("EDGEGRAD_DATA", ROOT / ".." / "shared" / "data"))


def train(*argv: str, timeout: int = 300) -> dict[str, Any]:
    """Run `edgegrad train` and return its result."""
    command = [sys.executable, "-m", "edgegrad.cli", "train", *argv, "--json"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=timeout)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
