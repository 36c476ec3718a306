"""Loads the sources in planted/, right or with one of the mistakes that are planted in them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from . import SimtError
from . import cupy_standin as cp
from .raw import Kernel

FOLDER = Path(__file__).parent / "planted"


def kernel(source: str, name: str, bug: str = "") -> Kernel:
    """The kernel `name` of planted/`source`.cu, compiled with the macro `bug` defined."""
    code = (FOLDER / f"{source}.cu").read_text()
    options = (f"-I{FOLDER}", *([f"-D{bug}"] if bug else []))
    plain = f'extern "C" __global__ void {name}(' in code
    expressions = () if plain else (name,)
    module = cp.RawModule(code=code, options=options, name_expressions=expressions)
    return module.get_function(name)


def faults_of(call: object, *args: object, **kwargs: object) -> SimtError:
    """The faults that a call raises; their text goes to the output of the test."""
    assert callable(call)
    with pytest.raises(SimtError) as caught:
        call(*args, **kwargs)
    print(caught.value)
    return caught.value


def floats(*shape: int, seed: int = 0) -> np.ndarray:
    """Random float32 values."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
