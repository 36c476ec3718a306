"""Stores against their oracle, on every device."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import devices
import edgegrad
import simt
from edgegrad.operators import (
    history_accumulate_grad,
    history_pull,
    history_push,
    history_push_pull,
    history_stale,
    history_take_grad,
)
from reference import history as oracle
from tolerances import FLOATS, bfloat16

F16, F32, F64 = (np.dtype(t) for t in (np.float16, np.float32, np.float64))
PAIRS = [(t, t) for t in FLOATS] + [
    pair for half in (F16, bfloat16) for pair in ((half, F32), (F32, half))
]
pairs = pytest.mark.parametrize(("S", "R"), PAIRS, ids=str)
kinds = pytest.mark.parametrize("kind", oracle.KINDS)


class Data:
    """A store and a batch, on a device and as the float64 numbers they hold."""

    def __init__(
        self, device: Any, S: Any, R: Any, kind: str, dim: int, IdxT: Any = np.int32, n: int = 30
    ) -> None:
        rng = np.random.default_rng([dim, n])
        self.device, self.n_rows = device, 40
        self.ids = oracle.batch_of(kind, self.n_rows, n, rng).astype(IdxT)
        self.store = rng.normal(size=(self.n_rows, dim)).astype(S)
        self.rows = rng.normal(size=(len(self.ids), dim)).astype(R)
        self.on_device = [device.array(a) for a in (self.store, self.ids, self.rows)]
        self.output = device.poisoned(self.rows.shape, R)

    @property
    def exact(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.store.astype(np.float64), self.ids, self.rows.astype(np.float64)

    def holds(self, store: Any) -> np.ndarray:
        return self.device.numpy(store)


def _dims(device: Any) -> tuple[int, ...]:
    return (1, 3, 8, 40) if device.name == "simt" else (0, 1, 3, 8, 40, 130)


@pairs
@kinds
def test_pull(device: Any, S: Any, R: Any, kind: str, IdxT: Any) -> None:
    for dim in _dims(device):
        d = Data(device, S, R, kind, dim, IdxT)
        store, ids, _ = d.on_device
        history_pull(d.output, store, ids, default=-2.5)
        expected = oracle.pull(d.exact[0], d.ids, -2.5)
        assert expected.worst(d.holds(d.output)) <= 1
        assert d.holds(store).tobytes() == d.store.tobytes()


@pairs
@kinds
@pytest.mark.parametrize(("duplicates", "momentum"), [("last", 1.0), ("mean", 1.0), ("last", 0.25)])
def test_push(device: Any, S: Any, R: Any, kind: str, duplicates: str, momentum: float) -> None:
    for dim in _dims(device):
        d = Data(device, S, R, kind, dim)
        store, ids, rows = d.on_device
        age = device.array(np.full(d.n_rows, -1))
        history_push(store, ids, rows, duplicates=duplicates, momentum=momentum, age=age, step=7)
        expected = oracle.push(*d.exact, duplicates, momentum)
        assert expected.worst(d.holds(store)) <= 1
        written = np.isin(np.arange(d.n_rows), d.ids)
        assert d.holds(store)[~written].tobytes() == d.store[~written].tobytes()
        assert (d.holds(age) == np.where(written, 7, -1)).all()


@pairs
@kinds
def test_accumulate(device: Any, S: Any, R: Any, kind: str, IdxT: Any) -> None:
    for dim in _dims(device):
        d = Data(device, S, R, kind, dim, IdxT)
        history_accumulate_grad(*d.on_device, scale=-0.5)
        assert oracle.accumulate(*d.exact, -0.5).worst(d.holds(d.on_device[0])) <= 1


@pairs
@kinds
@pytest.mark.parametrize(("clear", "max_norm"), [(True, None), (False, 2.0), (True, 0.0)])
def test_take(device: Any, S: Any, R: Any, kind: str, clear: bool, max_norm: float | None) -> None:
    for dim in _dims(device):
        d = Data(device, S, R, kind, dim)
        store, ids, _ = d.on_device
        history_take_grad(d.output, store, ids, clear=clear, max_norm=max_norm)
        expected, left = oracle.take(d.exact[0], d.ids, clear, max_norm)
        assert expected.worst(d.holds(d.output)) <= 1
        assert (d.holds(store).astype(np.float64) == left).all()


@pytest.mark.parametrize("push_first", [False, True])
def test_push_pull(device: Any, push_first: bool) -> None:
    d = Data(device, F32, F32, "distinct", 8)
    store, ids, rows = d.on_device
    pulled = d.ids[::-1].copy()
    history_push_pull(store, ids, rows, d.output, device.array(pulled), push_first=push_first)
    after = oracle.push(*d.exact, "last", 1.0).value
    assert (d.holds(store) == after).all()
    assert (d.holds(d.output) == (after if push_first else d.store)[pulled]).all()


def test_stale(device: Any, IdxT: Any) -> None:
    age = np.array([-1, 0, 3, 9, 10])
    ids = np.array([4, 3, 2, 1, 0, -1, 2], IdxT)
    for max_age in (0, 1, 7, 100):
        mask = device.array(np.ones(7, bool))
        history_stale(mask, device.array(age), device.array(ids), 10, max_age)
        assert (device.numpy(mask) == oracle.stale(age, ids, 10, max_age)).all()


def test_accumulated_bits_do_not_depend_on_the_order(device: Any) -> None:
    rng = np.random.default_rng(2)
    for T in FLOATS:
        ids = rng.integers(0, 4, 200)
        rows = (rng.normal(size=(200, 3)) * 10.0 ** rng.integers(-3, 4, (200, 1))).astype(T)
        found = set()
        for _ in range(5):
            order = rng.permutation(200)
            store = device.array(np.ones((4, 3), T))
            history_accumulate_grad(store, device.array(ids[order]), device.array(rows[order]))
            found.add(device.numpy(store).tobytes())
        assert len(found) == 1


def test_sums_of_extreme_numbers(device: Any) -> None:
    """Infinities and NaN come through, huge and tiny terms neither overflow nor vanish early."""
    columns = np.array(
        [[np.inf, 1, 2], [np.nan, 1, 2], [np.inf, -np.inf, 0], [1e308, -1e308, 3], [5e-324] * 3]
    )
    store = device.array(np.zeros((1, 5)))
    history_accumulate_grad(store, device.array(np.zeros(3, int)), device.array(columns.T.copy()))
    got = device.numpy(store)[0]
    assert got[0] == np.inf
    assert np.isnan(got[1:3]).all()
    assert got[3] == 3
    assert got[4] == 3 * 5e-324


def test_conservation(device: Any) -> None:
    """What the table holds and what was handed out are what was accumulated."""
    rng = np.random.default_rng(3)
    store, added, out = device.array(np.zeros((20, 6))), np.zeros(6), np.zeros(6)
    for _ in range(10):
        rows = rng.integers(-8, 8, (15, 6)).astype(float)
        ids = rng.integers(-1, 20, 15)
        history_accumulate_grad(store, device.array(ids), device.array(rows))
        added += rows[ids >= 0].sum(axis=0)
        taken = device.poisoned((9, 6), np.float64)
        history_take_grad(taken, store, device.array(rng.integers(-1, 20, 9)))
        out += device.numpy(taken).sum(axis=0)
        assert (device.numpy(store).sum(axis=0) + out == added).all()


def test_one_axis_is_one_column(device: Any) -> None:
    ids = device.array(np.array([3, 0, -1, 3]))
    results = []
    for shape in ((5,), (5, 1)):
        store = device.array(np.arange(5.0).reshape(shape))
        for n in ((4,), (4, 1)):
            out = device.poisoned(n, np.float64)
            history_pull(out, store, ids)
            history_accumulate_grad(store, ids, out)
            history_push(store, ids, out, duplicates="mean", momentum=0.5)
            history_take_grad(out, store, ids)
        results.append((device.numpy(store).ravel(), device.numpy(out).ravel()))
    assert (results[0][0] == results[1][0]).all()
    assert (results[0][1] == results[1][1]).all()


def test_rows_may_be_apart(device: Any) -> None:
    d = Data(device, F32, F32, "distinct", 8)
    wide = device.array(np.pad(d.store, ((0, 0), (4, 4)), constant_values=9))
    store = wide[:, 4:12]
    history_pull(d.output, store, d.on_device[1])
    history_push(store, *d.on_device[1:])
    assert (device.numpy(d.output) == d.store[d.ids]).all()
    got = device.numpy(wide)
    assert (got[:, 4:12] == oracle.push(*d.exact, "last", 1.0).value).all()
    assert (got[:, :4] == 9).all()
    assert (got[:, 12:] == 9).all()


def test_old_rows_do_not_leak(device: Any) -> None:
    store = device.array(np.full((3, 4), np.nan, F32))
    rows = np.array([[0.0, -0.0, 1, np.inf]], F32)
    history_push(store, device.array(np.array([1])), device.array(rows))
    assert device.numpy(store)[1].tobytes() == rows.tobytes()
    assert np.isnan(device.numpy(store)[[0, 2]]).all()


BAD_IDS = [[0, 40, 1], [0, 1, -2], [2**31 - 1, 0, 0], [-(2**31), 0, 0]]


@pytest.mark.parametrize("bad", BAD_IDS, ids=str)
def test_out_of_range_changes_nothing(device: Any, bad: list[int], IdxT: Any) -> None:
    d = Data(device, F32, F32, "increasing", 4, IdxT, n=3)
    store, good, rows = d.on_device
    age, mask = device.array(np.zeros(40, int)), device.array(np.ones(3, bool))
    ids = device.array(np.array(bad, IdxT))
    i = next(i for i, x in enumerate(bad) if not -1 <= x < 40)
    for name, call in {
        "history_pull": lambda: history_pull(d.output, store, ids),
        "history_push": lambda: history_push(store, ids, rows, age=age, step=1),
        "history_accumulate_grad": lambda: history_accumulate_grad(store, ids, rows),
        "history_take_grad": lambda: history_take_grad(d.output, store, ids),
        "history_stale": lambda: history_stale(mask, age, ids, 5, 1),
    }.items():
        text = rf"^{name}: `ids\[{i}\]` has the value {bad[i]}, expected -1 or a row in \[0, 40\)$"
        with pytest.raises(IndexError, match=text):
            call()
    for pushed, pulled in ((ids, good), (good, ids)):
        for push_first in (False, True):
            with pytest.raises(IndexError, match=rf"`pu\w+_ids\[{i}\]` has the value {bad[i]}"):
                history_push_pull(store, pushed, rows, d.output, pulled, push_first=push_first)
    assert device.numpy(store).tobytes() == d.store.tobytes()
    assert np.isnan(device.numpy(d.output)).all()
    assert not device.numpy(age).any()
    assert device.numpy(mask).all()


def test_differing_duplicates_change_nothing(device: Any) -> None:
    rows = np.arange(12.0).reshape(6, 2)
    ids, store = device.array(np.array([4, 1, -1, 4, 1, -1])), device.array(np.zeros((5, 2)))
    out = device.poisoned((6, 2), np.float64)
    text = r"`rows\[3\]` has other values than `rows\[0\]`, which is for row 4 of the store too, "
    for call in (
        lambda: history_push(store, ids, device.array(rows)),
        lambda: history_push_pull(store, ids, device.array(rows), out, ids),
    ):
        with pytest.raises(ValueError, match=text + "expected equal rows, or duplicates="):
            call()
    assert not device.numpy(store).any()
    assert np.isnan(device.numpy(out)).all()
    history_push(store, ids, device.array(rows[[0, 1, 2, 0, 1, 5]]))
    assert (device.numpy(store)[[4, 1]] == rows[:2]).all()


@pytest.mark.parametrize(
    ("error", "text", "options"),
    [
        (ValueError, "`duplicates` is 'sum', expected 'error' or", {"duplicates": "sum"}),
        (ValueError, "`momentum` is 0, expected a number in", {"momentum": 0}),
        (ValueError, "`momentum` is nan", {"momentum": float("nan")}),
        (TypeError, "`momentum` has type str, expected a number", {"momentum": "1"}),
        (ValueError, "`step` is 3, expected a step beside `age`", {"step": 3}),
    ],
)
def test_wrong_options(error: Any, text: str, options: dict[str, Any]) -> None:
    d = Data(devices.Host(), F32, F32, "increasing", 4)
    with pytest.raises(error, match=f"^history_push: {text}"):
        history_push(*d.on_device, **options)
    assert d.on_device[0].tobytes() == d.store.tobytes()
    with pytest.raises(
        ValueError, match="`max_norm` is -1, expected a number that is not negative"
    ):
        history_take_grad(d.output, *d.on_device[:2], max_norm=-1)


@pytest.fixture
def on_simt(monkeypatch: pytest.MonkeyPatch) -> devices.Simt:
    device = devices.Simt()
    device.launches = simt.install(monkeypatch)
    return device


def test_without_validation_a_wrong_call_does_nothing(on_simt: devices.Simt) -> None:
    d = Data(on_simt, F32, F32, "one", 4)
    store, ids, rows = d.on_device
    bad = on_simt.array(np.where(d.ids, 40, 0))
    history_pull(d.output, store, bad, validate=False)
    history_push(store, ids, rows, validate=False)
    history_push_pull(store, bad, rows, d.output, ids, validate=False)
    history_accumulate_grad(store, bad, rows, validate=False)
    history_take_grad(d.output, store, bad, validate=False)
    assert on_simt.numpy(store).tobytes() == d.store.tobytes()
    assert np.isnan(on_simt.numpy(d.output)).all()


def test_stream_reaches_every_launch(on_simt: devices.Simt) -> None:
    stream = simt.cupy_standin.cuda.Stream().ptr
    d = Data(on_simt, F32, F32, "distinct", 4)
    store, ids, rows = d.on_device
    on_simt.launches.clear()
    history_push_pull(store, ids, rows, d.output, ids, stream)
    history_accumulate_grad(store, ids, rows, stream)
    history_take_grad(d.output, store, ids, stream)
    assert len(on_simt.launches) == 9
    assert {launch.stream for launch in on_simt.launches} == {stream}


def test_launched_kernels_are_declared(on_simt: devices.Simt) -> None:
    declared = {name for _, name in edgegrad.operators.kernels()}
    for S, R in PAIRS:
        for dim in (1, 8):
            d = Data(on_simt, S, R, "repeated", dim)
            store, ids, rows = d.on_device
            history_accumulate_grad(store, ids, rows)
            history_pull(d.output, store, ids)
    launched = {launch.kernel for launch in on_simt.launches}
    assert launched <= declared
    assert len(launched) == 33


@pytest.fixture
def threads() -> Iterator[Any]:
    yield edgegrad.set_num_threads
    edgegrad.set_num_threads(0)


def test_bits_do_not_depend_on_threads(threads: Any) -> None:
    found = set()
    for n in (1, 2, 5):
        threads(n)
        rng = np.random.default_rng(1)
        ids, rows = rng.integers(-1, 500, 40_000), rng.normal(size=(40_000, 16)).astype(F32)
        store, out = np.ones((1000, 16), F32), np.empty_like(rows)
        history_accumulate_grad(store, ids, rows)
        history_push(store, ids, rows, duplicates="mean", momentum=0.5)
        history_pull(out, store, ids)
        history_take_grad(rows, store, ids)
        found.add(store.tobytes() + out.tobytes() + rows.tobytes())
    assert len(found) == 1


def test_several_threads_pull_at_once() -> None:
    store = np.arange(4000.0).reshape(1000, 4)
    outputs = [np.empty((500, 4)) for _ in range(4)]
    ids = [np.random.default_rng(i).integers(0, 1000, 500) for i in range(4)]

    def work(i: int) -> None:
        for _ in range(50):
            history_pull(outputs[i], store, ids[i])

    workers = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert all((outputs[i] == store[ids[i]]).all() for i in range(4))


def test_large_stores_are_addressed_in_64_bits(tmp_path: Any) -> None:
    """10 GB of file, of which nearly all is a hole."""
    n_rows, dim = 80_000_000, 32
    store = np.memmap(tmp_path / "store", np.float32, "w+", shape=(n_rows, dim))
    ids = np.array([n_rows - 1, 3, 2**31 // dim + 1], np.int32)
    rows = np.random.default_rng(0).normal(size=(3, dim)).astype(F32)
    history_push(store, ids, rows)
    history_accumulate_grad(store, ids[::-1].copy(), rows[::-1].copy())
    out = np.empty_like(rows)
    history_take_grad(out, store, ids)
    assert (out == 2 * rows).all()
    assert not np.asarray(store[ids]).any()
