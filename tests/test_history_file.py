"""Memory-mapped stores: what survives, what is refused, and a process killed while it writes."""

from __future__ import annotations

import errno
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from edgegrad import HistoryStore

IDS = np.arange(3)
ROWS = np.arange(6, dtype=np.float32).reshape(3, 2)


def _made(path: Path) -> None:
    with HistoryStore(5, 2, 2, "float16", path=path) as store:
        store.step()
        store.push(1, IDS, ROWS)
        store.accumulate_grad(0, IDS, ROWS)


def test_what_was_closed_is_there_again(tmp_path: Path) -> None:
    _made(tmp_path / "store")
    assert os.listdir(tmp_path) == ["store"]
    with HistoryStore.open(tmp_path / "store") as store:
        assert (store.n_rows, store.dim, store.n_layers, store.n_steps) == (5, 2, 2, 1)
        assert (store.pull(1, IDS) == ROWS).all()
        assert (store.take_grad(0, IDS) == ROWS).all()
        assert store.ages.tolist() == [[-1] * 5, [1, 1, 1, -1, -1]]
        with pytest.raises(ValueError, match="which is open elsewhere, expected a store that nob"):
            HistoryStore.open(tmp_path / "store")
    with pytest.raises(ValueError, match=r"^HistoryStore.pull: `self` has been closed, expected"):
        store.pull(1, IDS)


def test_a_store_in_memory_can_be_saved(tmp_path: Path) -> None:
    store = HistoryStore(5, 2, 1, "bfloat16")
    store.push(0, IDS, ROWS)
    store.save(tmp_path / "store")
    with pytest.raises(ValueError, match=r"^HistoryStore.save: `path` has the name of an existing"):
        store.save(tmp_path / "store")
    with HistoryStore.open(tmp_path / "store") as other:
        assert other.state_dict()["tables"].tobytes() == store.tables.tobytes()


def test_a_file_that_is_not_clean(tmp_path: Path) -> None:
    path = tmp_path / "store"
    _made(path)
    store = HistoryStore.open(path)
    store.push(1, np.array([4]), np.ones((1, 2), np.float32))
    store.ages[1, 0] = -1  # as if the process had ended in the middle of this row
    store._file.close()
    text = r"^HistoryStore.open: `path` has .*, which is not clean: its process ended after step 1 "
    for _ in range(2):
        with pytest.raises(ValueError, match=text + "was flushed, expected a clean store, or rec"):
            HistoryStore.open(path)
    with HistoryStore.open(path, recover=True) as store:
        assert store.tables[1].tolist() == [[0, 0], [2, 3], [4, 5], [0, 0], [1, 1]]
        assert not store.grad_tables.any()
    HistoryStore.open(path).close()


def test_after_a_restart_of_the_machine_everything_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "store"
    _made(path)
    store = HistoryStore.open(path)
    store.push(1, np.array([4]), np.ones((1, 2), np.float32))
    store._file.close()
    monkeypatch.setattr("edgegrad.history_file._boot", lambda: b"another")
    with HistoryStore.open(path, recover=True) as store:
        assert not store.tables.any()
        assert (store.ages == -1).all()


def test_flushing_makes_clean(tmp_path: Path) -> None:
    store = HistoryStore(5, 2, 1, path=tmp_path / "store")
    for _ in range(2):
        store.push(0, IDS, ROWS)
        store.step()
        store.flush()
    store._file.close()
    with HistoryStore.open(tmp_path / "store") as store:
        assert store.n_steps == 2


def test_reading_does_not_make_unclean(tmp_path: Path) -> None:
    _made(tmp_path / "store")
    store = HistoryStore.open(tmp_path / "store")
    store.pull(1, IDS)
    store._file.close()
    HistoryStore.open(tmp_path / "store").close()


def test_what_is_no_store(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with pytest.raises(ValueError, match=r"which cannot be opened \(No such file or directory\)"):
        HistoryStore.open(path)
    for content in (b"", b"x" * 9000, b"EGSTORE1" + bytes(4088)):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="expected a file written by HistoryStore"):
            HistoryStore.open(path)
    path.unlink()
    _made(path)
    os.truncate(path, 5000)
    with pytest.raises(ValueError, match="store of 5000 bytes, expected the 16384 of its header"):
        HistoryStore.open(path)
    with pytest.raises(ValueError, match="which cannot be written"):
        HistoryStore(2, 2, 2, path=tmp_path / "nowhere" / "store")


def test_a_full_disk_is_told_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    text = r"store, for which there is no room \(No space left on device\), expected a writable"
    with pytest.raises(ValueError, match=text):
        HistoryStore(5, 2, 1, path=tmp_path / "store")
    assert not any(tmp_path.iterdir())


_WRITER = """
import sys
import numpy as np
from edgegrad import HistoryStore
store = HistoryStore.open(sys.argv[1], recover=True)
ids = np.arange(store.n_rows)
print("ready", flush=True)
while True:
    store.step()
    for layer in range(store.n_layers):
        value = store.n_steps % 1000
        store.push(layer, ids, np.full((store.n_rows, store.dim), value, np.float32))
        store.accumulate_grad(layer, ids, np.ones((store.n_rows, store.dim), np.float32))
    if store.n_steps % 3 == 0:
        store.flush()
"""


def _killed(path: Path, seconds: float) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", _WRITER, str(path)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout.readline() == "ready\n"
    time.sleep(seconds)
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()


def _is_clean(path: Path) -> bool:
    try:
        HistoryStore.open(path).close()
    except ValueError as error:
        if "which is not clean" not in str(error):
            raise
        return False
    return True


def test_a_process_killed_while_it_writes(tmp_path: Path) -> None:
    """Ten times at random moments: every row is whole and as old as it says, or forgotten."""
    path, rng, unclean = tmp_path / "store", random.Random(1), 0
    HistoryStore(3000, 64, 2, path=path).close()
    for _ in range(10):
        _killed(path, rng.uniform(0.01, 0.15))
        clean = _is_clean(path)
        store = HistoryStore.open(path, recover=not clean)
        if not clean:
            unclean += 1
            assert not store.grad_tables.any()
        tables, ages = store.tables, store.ages
        assert (tables == tables[:, :, :1]).all(), "a torn row"
        pushed = ages >= 0
        assert (tables[:, :, 0][pushed] == ages[pushed] % 1000).all(), "a row of another age"
        assert not tables[~pushed].any()
        del tables
        store.close()
    assert unclean
