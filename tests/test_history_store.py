"""HistoryStore: its tables, ages, checkpoints, and how it shares them."""

from __future__ import annotations

import threading
import time
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import devices
import edgegrad
import simt
from edgegrad import HistoryStore
from edgegrad.backends.host import Turns


def _store(device: Any, *args: Any, **kwargs: Any) -> HistoryStore:
    return HistoryStore(*args, device=device.location, **kwargs)


def test_a_mailbox(device: Any) -> None:
    store = _store(device, 5, 3, 2)
    ids, rows = device.array(np.array([4, 0])), device.array(np.ones((2, 3), np.float32))
    store.push(1, ids, rows)
    assert device.numpy(store.pull(1, ids)).all()
    assert not device.numpy(store.pull(0, ids)).any()
    for _ in range(2):
        store.accumulate_grad(0, ids, rows, scale=0.5)
    again = device.array(np.array([0, 0, 4]))
    assert device.numpy(store.take_grad(0, again)).tolist() == [[1] * 3, [0] * 3, [1] * 3]
    assert not device.numpy(store.grad_tables).any()


def test_a_snapshot(device: Any) -> None:
    store = _store(device, 5, 2, 1)
    ids = device.array(np.array([1, 2]))
    for value in (3, 7):
        store.push_grad(0, ids, device.array(np.full((2, 2), value, np.float32)))
    for _ in range(2):
        assert (device.numpy(store.pull_grad(0, ids)) == 7).all()


def test_ages(device: Any) -> None:
    store = _store(device, 4, 1, 1)
    for i in range(3):
        store.push(0, device.array(np.array([i])), device.array(np.ones((1, 1), np.float32)))
        store.step()
    assert device.numpy(store.ages).tolist() == [[0, 1, 2, -1]]
    every = device.array(np.arange(4))
    assert device.numpy(store.stale(0, every, 2)).tolist() == [True, False, False, True]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_gradients_of_half_types_are_float32(device: Any, dtype: str) -> None:
    store = _store(device, 3, 4, 1, dtype)
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    wide = np.float64 if dtype == "float64" else np.float32
    assert store.tables.dtype == kind
    assert store.grad_tables.dtype == wide
    ids, third = device.array(np.array([2])), np.full((1, 4), 1 / 3)
    store.push(0, ids, device.array(third.astype(wide)))
    assert (device.numpy(store.pull(0, ids)) == third.astype(kind)).all()
    store.accumulate_grad(0, ids, device.array(third.astype(kind)))
    assert store.take_grad(0, ids).dtype == wide


def test_checkpoint(device: Any) -> None:
    store, other = (_store(device, 6, 2, 2, "float16") for _ in range(2))
    ids, rows = device.array(np.arange(4)), device.array(np.arange(8.0, dtype="f4").reshape(4, 2))
    store.step()
    store.push(1, ids, rows)
    store.accumulate_grad(0, ids, rows)
    state = store.state_dict()
    store.take_grad(0, ids)
    other.load_state_dict(state)
    assert other.n_steps == 1
    assert (device.numpy(other.ages) == state["ages"]).all()
    assert (device.numpy(other.pull(1, ids)) == device.numpy(rows)).all()
    assert (device.numpy(other.take_grad(0, ids)) == device.numpy(rows)).all()


def test_a_checkpoint_that_does_not_fit_changes_nothing() -> None:
    store = HistoryStore(6, 2, 2)
    store.push(0, np.array([1]), np.ones((1, 2), np.float32))
    before = store.state_dict()
    for wrong in (
        HistoryStore(7, 2, 2).state_dict(),
        HistoryStore(6, 2, 2, "float16").state_dict(),
        {**before, "ages": np.zeros((2, 6), np.int32)},
        {**before, "grad_tables": np.zeros((2, 5, 2), np.float32)},
        {**before, "n_steps": -1},
        {},
    ):
        with pytest.raises((ValueError, TypeError), match=r"^HistoryStore.load_state_dict: `"):
            store.load_state_dict(wrong)
        assert store.tables.tobytes() == before["tables"].tobytes()
        assert store.n_steps == 0


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("`n_rows` has the value -1, expected a number in", {"n_rows": -1}),
        ("`dim` has type float, expected a whole number", {"dim": 2.0}),
        ("`dtype` is 'int32', expected 'float16' or ", {"dtype": "int32"}),
        ("`device` is 'tpu', expected 'cpu', 'cuda' or", {"device": "tpu"}),
        ("`pinned` is True, expected False beside", {"pinned": True}),
        ("`device` is 'cuda', expected 'cpu' beside", {"device": "cuda", "path": "x"}),
    ],
)
def test_wrong_arguments(text: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(edgegrad.ArgumentError, match=f"^HistoryStore: {text}"):
        HistoryStore(**{"n_rows": 3, "dim": 2, "n_layers": 1, **arguments})


def test_wrong_calls() -> None:
    store, ids = HistoryStore(3, 2, 1, grad=False), np.array([0])
    with pytest.raises(ValueError, match=r"^HistoryStore.pull: `layer` has the value 1, expected"):
        store.pull(1, ids)
    with pytest.raises(ValueError, match=r"`self` has no tables of gradients, expected a store"):
        store.take_grad(0, ids)


@pytest.fixture
def on_simt(monkeypatch: pytest.MonkeyPatch) -> devices.Simt:
    simt.install(monkeypatch)
    cp = simt.cupy_standin
    pinned = lambda n: cp.zeros(n, np.uint8)._host  # noqa: E731
    monkeypatch.setattr(cp.cuda, "alloc_pinned_memory", pinned, raising=False)
    return devices.Simt()


def test_pinned_tables_are_used_where_they_are(on_simt: devices.Simt) -> None:
    store = HistoryStore(5, 4, 1, "float16", device="cuda", pinned=True)
    assert isinstance(store.tables, np.ndarray)
    ids = on_simt.array(np.array([3, 1]))
    store.push(0, ids, on_simt.array(np.ones((2, 4), np.float32)))
    assert store.tables[0, [3, 1]].all()
    assert on_simt.numpy(store.pull(0, ids)).all()
    other = HistoryStore(5, 4, 1, "float16", device="cuda", pinned=True)
    other.load_state_dict(store.state_dict())
    assert (other.tables == store.tables).all()


def test_streams_wait_for_each_other(on_simt: devices.Simt) -> None:
    """Readers for the last writer, a writer for all before it, nobody for the own stream."""
    store = HistoryStore(5, 4, 1, device="cuda")
    a, b, c = (simt.cupy_standin.cuda.Stream().ptr for _ in range(3))
    ids, rows = on_simt.array(np.array([3, 1])), on_simt.array(np.ones((2, 4), np.float32))
    waits = simt.cupy_standin.cuda.waits

    def waited(call: Any, stream: int) -> set[tuple[int, int]]:
        waits.clear()
        call(stream)
        return {(x, y) for x, y in waits if {x, y} <= {0, a, b, c}}

    out = on_simt.array(np.zeros((2, 4), np.float32))
    push = lambda s: store.push(0, ids, rows, s)  # noqa: E731
    pull = lambda s: store.pull(0, ids, out, s)  # noqa: E731
    take = lambda s: store.take_grad(0, ids, out, s)  # noqa: E731
    assert waited(push, a) == {(a, 0)}  # where the tables were made
    assert waited(pull, a) == set()
    assert waited(pull, b) == {(b, a)}
    assert waited(pull, c) == {(c, a)}
    assert waited(take, b) == {(b, a), (b, c)}
    assert waited(pull, a) == {(a, b)}


def test_a_writer_is_alone() -> None:
    turns, log = Turns(), []

    def write() -> None:
        with turns.alone():
            log.append("write")

    with turns.together(), turns.together():
        writer = threading.Thread(target=write)
        writer.start()
        time.sleep(0.05)
        log.append("read")
    writer.join()
    assert log == ["read", "write"]


def test_writers_take_turns() -> None:
    store, one = HistoryStore(4, 8, 1, "float64"), np.ones((3, 8))

    def work() -> None:
        for _ in range(200):
            store.accumulate_grad(0, np.array([1, 1, 3]), one)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert (store.grad_tables[0, :, 0] == [0, 1600, 0, 800]).all()
