"""R28: imports and exports are released exactly once, wherever their last reference goes."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import edgegrad
from edgegrad.interop import view
from edgegrad.operators import agg_hg_basis_n2n_post_fwd
from recipes.calls import PLAIN, SUM, X
from recipes.test_recipes_exporters import HOST, Exporter, OldExporter

MANY = 100_000
MOST_GROWTH = 5 << 20


class Watched(np.ndarray):
    """An array that can be watched."""


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _assert_no_growth(step: Callable[[], Any], times: int = MANY) -> None:
    for _ in range(1000):
        step()
    gc.collect()
    before = _resident()
    for _ in range(times):
        step()
    gc.collect()
    assert _resident() - before < MOST_GROWTH


def _empty(kind: str) -> Any:
    if kind == "torch":
        return pytest.importorskip("torch", reason="PyTorch is not installed").zeros((0, 4))
    if kind == "torch, requires grad":
        return _empty("torch").requires_grad_()
    if kind == "jax":
        return pytest.importorskip("jax.numpy", reason="JAX is not installed").zeros((0, 4))
    a = np.zeros((0, 4), np.float32)
    return {"NumPy": lambda a: a, "DLPack": Exporter, "old DLPack": OldExporter}[kind](a)


@pytest.mark.parametrize(
    "kind", ["NumPy", "DLPack", "old DLPack", "torch", "torch, requires grad", "jax"]
)
def test_r28_many_imports_of_nothing(kind: str) -> None:
    array = _empty(kind)
    references = sys.getrefcount(array)
    _assert_no_growth(lambda: view("test", "x", array))
    assert sys.getrefcount(array) == references


def test_r28_many_calls_and_many_failed_calls() -> None:
    struct, out, x = PLAIN.make(HOST), HOST.poisoned((4, 2), float), Exporter(X)
    _assert_no_growth(lambda: agg_hg_basis_n2n_post_fwd(out, x, None, struct), 20_000)
    np.testing.assert_array_equal(out, SUM)
    ids, short = Exporter(np.zeros((4, 2), int)), Exporter(X[:3])

    def fail() -> None:
        for bad in (ids, short):
            with pytest.raises(edgegrad.ArgumentError):
                agg_hg_basis_n2n_post_fwd(out, bad, None, struct)

    _assert_no_growth(fail, 2_000)


def test_r28_many_capsules_dropped() -> None:
    a = view("test", "x", np.zeros((0, 4), np.float32))
    references = sys.getrefcount(a)
    _assert_no_growth(lambda: a.__dlpack__())
    _assert_no_growth(lambda: a.__dlpack__(max_version=(1, 0)))
    _assert_no_growth(lambda: np.from_dlpack(a))
    assert sys.getrefcount(a) == references


def test_r28_types_of_exporters_are_not_kept() -> None:
    kind = type("Once", (Exporter,), {})
    view("test", "x", kind(X))
    gone = weakref.ref(kind)
    del kind
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("wrap", [lambda a: a, Exporter, OldExporter])
def test_r28_an_import_lives_as_long_as_its_view(wrap: Callable[[Any], Any]) -> None:
    array = np.ones((3, 2)).view(Watched)
    gone = weakref.ref(array)
    a = view("test", "x", wrap(array))
    del array
    gc.collect()
    assert gone() is not None
    again = np.from_dlpack(a)
    del a
    gc.collect()
    assert again.sum() == 6  # an export keeps what it came from
    del again
    gc.collect()
    assert gone() is None


def test_r28_graph_keeps_its_arrays_and_lets_them_go() -> None:
    indices = np.zeros(1, np.int32).view(Watched)
    gone = weakref.ref(indices)
    struct = edgegrad.make_csc(np.array([0, 1], np.int32), indices)
    del indices
    gc.collect()
    assert np.asarray(struct.indices).tolist() == [0]
    struct.build_reverse()
    del struct
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("wrap", [lambda a: a, Exporter, OldExporter])
def test_r28_last_reference_on_another_thread(wrap: Callable[[Any], Any]) -> None:
    array = np.ones((3, 2)).view(Watched)
    gone = weakref.ref(array)
    box = [view("test", "x", wrap(array))]
    box.append(box[0].__dlpack__())
    del array
    thread = threading.Thread(target=box.clear)
    thread.start()
    thread.join()
    assert gone() is None


AT_EXIT = """
import threading, time
import numpy as np
import edgegrad
from edgegrad.interop import view

class Exporter:
    def __dlpack__(self, **kwargs):
        return np.zeros((0, 4)).__dlpack__(**kwargs)

graph = edgegrad.make_csc(np.array([0, 1]), np.array([0]))
graph.build_reverse()
imported = view("test", "x", Exporter())
capsule = graph.offsets.__dlpack__()
exported = np.from_dlpack(graph.indices)
{more}
"""
THREAD = """
def hold(capsule, graph):
    time.sleep(60)
threading.Thread(target=hold, args=(graph.offsets.__dlpack__(), graph), daemon=True).start()
"""


@pytest.mark.parametrize("more", ["", THREAD], ids=["main thread", "daemon thread"])
def test_r28_references_at_interpreter_exit(more: str) -> None:
    code = AT_EXIT.replace("{more}", more)
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
