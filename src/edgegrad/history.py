"""`HistoryStore`: the tables of a model whose mini-batches read rows of earlier steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from edgegrad.backends import cuda, host
from edgegrad.errors import wrong_option, wrong_type, wrong_value
from edgegrad.graph.make import count
from edgegrad.history_file import Layout, StoreFile, numpy_dtype
from edgegrad.interop import view
from edgegrad.operator import FLOATS, HALVES
from edgegrad.operators import (
    history_accumulate_grad,
    history_pull,
    history_push,
    history_stale,
    history_take_grad,
)

_NAME = "HistoryStore"


class HistoryStore:
    """Rows of every layer from earlier steps, and the gradients that wait for them.

    A training step in which nothing is lost and nothing depends on chance:

    1. `take_grad` for the rows of the batch, in all layers;
    2. `pull` the rows of its neighbours;
    3. forward;
    4. backward, the top layer first; what was taken is added to the cotangent of the live row;
    5. `accumulate_grad` for the neighbours that were pulled;
    6. `push` the rows of the batch; after the last batch of an epoch, `step`.

    That is the mailbox style of Euler. In the snapshot style of LMC gradients are rows like others:
    `push_grad` overwrites, `pull_grad` reads and leaves.

    Parameters
    ----------
    n_rows, dim, n_layers : int
        Nodes, width of a row, layers between the first and the last.
    dtype : str
        Of rows; the gradients of half types are kept in float32.
    device : str
        "cpu", "cuda" or "cuda:<n>".
    grad : bool
        Whether there are tables of gradients.
    path : path or None
        Keep the tables in a new file that is mapped into memory, on the host; `open` opens it
        again. The file is clean after `flush` and `close`, and says so.
    pinned : bool
        With a GPU: tables in host memory, which kernels read and write where it is.

    Attributes
    ----------
    tables, grad_tables : arrays (n_layers, n_rows, dim)
        The tables themselves, None without gradients. Change them through the methods.
    ages : array (n_layers, n_rows), int64
        The step each row was last pushed in, -1 for never.
    n_steps : int
        How often `step` was called.

    Notes
    -----
    On the host any number of threads may pull at once; a writer waits for them and they for it. On
    a GPU all work goes on the stream given, and events order it where streams differ.
    """

    def __init__(
        self,
        n_rows: int,
        dim: int,
        n_layers: int,
        dtype: str = "float32",
        *,
        device: str = "cpu",
        grad: bool = True,
        path: str | Path | None = None,
        pinned: bool = False,
    ) -> None:
        layout = _layout(n_rows, dim, n_layers, dtype, grad)
        on_gpu = _on_gpu(device)
        if pinned and not on_gpu:
            raise wrong_option(_NAME, "pinned", pinned, "False beside device='cpu'")
        if path is not None and on_gpu:
            raise wrong_option(_NAME, "device", device, "'cpu' beside `path`")
        file, arrays = None, {}
        if path is not None:
            file = StoreFile.create(Path(path), layout, _NAME)
            arrays = file.arrays
        else:
            for name, (shape, kind) in layout.arrays().items():
                arrays[name] = _zeros(shape, kind, device, pinned)
            arrays["ages"][...] = -1
        self._init(layout, arrays, device, pinned, file)

    def _init(
        self,
        layout: Layout,
        arrays: Mapping[str, Any],
        device: str,
        pinned: bool,
        file: StoreFile | None,
    ) -> None:
        self._layout, self._file, self.device, self.pinned = layout, file, device, pinned
        self.n_rows, self.dim, self.n_layers = layout.n_rows, layout.dim, layout.n_layers
        self.dtype, self.grad_dtype = layout.dtype, layout.grad_dtype
        self.tables, self.ages = arrays["tables"], arrays["ages"]
        self.grad_tables = arrays.get("grad_tables")
        self.n_steps = file.step if file else 0
        self._turns = host.Turns()
        self._order = cuda.StreamOrder(device) if _on_gpu(device) else None
        if self._order:
            with self._order.writing(0):  # the tables were filled on this stream
                pass

    # ---- rows

    def pull(
        self, layer: int, ids: Any, output: Any = None, stream_id: int = 0, *, default: float = 0.0
    ) -> Any:
        """Read rows of a layer (see `history_pull`); return `output`, a new array if None."""
        table = self._layer("pull", self.tables, layer)
        output = self._output("pull", ids, output, self.dtype, stream_id)
        with self._reading(stream_id):
            history_pull(output, table, ids, stream_id, default=default)
        return output

    def push(
        self,
        layer: int,
        ids: Any,
        rows: Any,
        stream_id: int = 0,
        *,
        duplicates: str = "error",
        momentum: float = 1.0,
    ) -> None:
        """Overwrite rows of a layer and note their age (see `history_push`)."""
        table, age = (self._layer("push", t, layer) for t in (self.tables, self.ages))
        options = {"duplicates": duplicates, "momentum": momentum}
        with self._writing(stream_id):
            history_push(table, ids, rows, stream_id, age=age, step=self.n_steps, **options)

    def stale(self, layer: int, ids: Any, max_age: int, stream_id: int = 0) -> Any:
        """Tell which rows are more than `max_age` steps old, or were never pushed."""
        age = self._layer("stale", self.ages, layer)
        mask = self._output("stale", ids, None, "bool", stream_id)
        with self._reading(stream_id):
            history_stale(mask, age, ids, self.n_steps, max_age, stream_id)
        return mask

    # ---- gradients

    def accumulate_grad(
        self, layer: int, ids: Any, grad_rows: Any, stream_id: int = 0, *, scale: float = 1.0
    ) -> None:
        """Add to the gradients of rows that were pulled (see `history_accumulate_grad`)."""
        table = self._layer("accumulate_grad", self.grad_tables, layer)
        with self._writing(stream_id):
            history_accumulate_grad(table, ids, grad_rows, stream_id, scale=scale)

    def take_grad(
        self,
        layer: int,
        ids: Any,
        output: Any = None,
        stream_id: int = 0,
        *,
        clear: bool = True,
        max_norm: float | None = None,
    ) -> Any:
        """Read gradients and leave zeros (see `history_take_grad`); return `output`."""
        table = self._layer("take_grad", self.grad_tables, layer)
        output = self._output("take_grad", ids, output, self.grad_dtype, stream_id)
        with self._writing(stream_id):
            history_take_grad(output, table, ids, stream_id, clear=clear, max_norm=max_norm)
        return output

    def push_grad(
        self, layer: int, ids: Any, grad_rows: Any, stream_id: int = 0, *, duplicates: str = "error"
    ) -> None:
        """Overwrite gradients: the snapshot style."""
        table = self._layer("push_grad", self.grad_tables, layer)
        with self._writing(stream_id):
            history_push(table, ids, grad_rows, stream_id, duplicates=duplicates)

    def pull_grad(self, layer: int, ids: Any, output: Any = None, stream_id: int = 0) -> Any:
        """Read gradients and leave them: the snapshot style."""
        table = self._layer("pull_grad", self.grad_tables, layer)
        output = self._output("pull_grad", ids, output, self.grad_dtype, stream_id)
        with self._reading(stream_id):
            history_pull(output, table, ids, stream_id)
        return output

    def step(self) -> None:
        """Begin the next step: what is pushed from now on is younger."""
        self.n_steps += 1

    # ---- checkpoints and files

    def state_dict(self) -> dict[str, Any]:
        """Copy everything to the host, for a checkpoint."""
        with self._reading(0):
            arrays = {name: _to_host(a, self.device).copy() for name, a in self._arrays.items()}
        return {**asdict(self._layout), **arrays, "n_steps": self.n_steps}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what `state_dict` gave; nothing is changed unless all of it fits."""
        where = "HistoryStore.load_state_dict"
        for name, expected in asdict(self._layout).items():
            if state.get(name) != expected:
                has = f"`{name}` {state.get(name)!r}"
                raise wrong_value(where, "state", has, f"{expected!r} as in this store")
        steps = count(where, "n_steps", state.get("n_steps"))
        given = {}
        for name, (shape, dtype) in self._layout.arrays().items():
            a = given[name] = np.asarray(state.get(name))
            if a.shape != shape or a.dtype != dtype:
                has = f"`{name}` of shape {a.shape} and dtype {a.dtype}"
                raise wrong_value(where, "state", has, f"shape {shape} and dtype {dtype}")
        with self._writing(0):
            for name, a in self._arrays.items():
                _fill(a, given[name], self.device)
        self.n_steps = steps

    def save(self, path: str | Path) -> None:
        """Write a copy to a new file that `open` opens."""
        state = self.state_dict()
        file = StoreFile.create(Path(path), self._layout, "HistoryStore.save")
        file.begin_write()
        for name, a in file.arrays.items():
            a[...] = state[name]
        file.flush(self.n_steps)
        file.close()

    @classmethod
    def open(cls, path: str | Path, *, recover: bool = False) -> HistoryStore:
        """Map the file of a store into memory, to go on with it.

        Parameters
        ----------
        path : path
            A file made by `save` or by a store with `path`.
        recover : bool
            What to do with a file that is not clean, since its process ended between two flushes:
            False raises; True forgets the rows that were being written (those of age -1) and all
            gradients, and everything if the machine has been restarted since.

        Raises
        ------
        ArgumentError
            A `ValueError` if there is no store, if it is open elsewhere or if it is not clean.
        """
        where = "HistoryStore.open"
        file = StoreFile.open(Path(path), where)
        if not file.clean:
            if not recover:
                step = file.step
                file.close()
                has = f"{path}, which is not clean: its process ended after step {step} was flushed"
                raise wrong_value(where, "path", has, "a clean store, or recover=True")
            _recover(file)
        store = cls.__new__(cls)
        store._init(file.layout, file.arrays, "cpu", False, file)
        return store

    def flush(self) -> None:
        """Put a mapped store on the disk and call it clean; other stores do nothing."""
        if self._file:
            with self._turns.alone():
                self._file.flush(self.n_steps)

    def close(self) -> None:
        """Flush and let go of the file; the store can no longer be used."""
        if self._file:
            self.flush()
            self.tables = self.ages = self.grad_tables = None
            self._file.close()
            self._file = None

    @property
    def nbytes(self) -> int:
        """Bytes of all tables."""
        return sum(int(a.nbytes) for a in self._arrays.values())

    def __enter__(self) -> HistoryStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        text = ", ".join(f"{k}={v!r}" for k, v in asdict(self._layout).items())
        return f"{_NAME}({text}, device={self.device!r}, n_steps={self.n_steps})"

    # ---- what the methods share

    @property
    def _arrays(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._layout.arrays()}

    def _layer(self, method: str, tables: Any, layer: int) -> Any:
        where = f"{_NAME}.{method}"
        if self.tables is None:
            raise wrong_value(where, "self", "been closed", "an open store")
        if tables is None:
            raise wrong_value(
                where, "self", "no tables of gradients", "a store made with grad=True"
            )
        return tables[count(where, "layer", layer, self.n_layers - 1)]

    def _output(self, method: str, ids: Any, output: Any, dtype: str, stream_id: int) -> Any:
        """Make the array to write into where none is given, where the ids are."""
        if output is not None:
            return output
        a = view(f"{_NAME}.{method}", "ids", ids)
        shape = (a.size,) if dtype == "bool" else (a.size, self.dim)
        return _zeros(shape, numpy_dtype(dtype), a.device, stream_id=stream_id)

    def _reading(self, stream_id: int) -> AbstractContextManager[None]:
        return self._order.reading(stream_id) if self._order else self._turns.together()

    @contextmanager
    def _writing(self, stream_id: int) -> Iterator[None]:
        if self._order:
            with self._turns.alone(), self._order.writing(stream_id):
                yield
            return
        with self._turns.alone():
            if self._file:
                self._file.begin_write()
            yield


def _layout(n_rows: int, dim: int, n_layers: int, dtype: str, grad: bool) -> Layout:
    if not isinstance(dtype, str):
        raise wrong_type(_NAME, "dtype", f"type {type(dtype).__name__}", "the name of a dtype")
    if dtype not in FLOATS:
        raise wrong_option(_NAME, "dtype", dtype, " or ".join(map(repr, FLOATS)))
    sizes = {"n_rows": n_rows, "dim": dim, "n_layers": n_layers}
    checked = {name: count(_NAME, name, n) for name, n in sizes.items()}
    grad_dtype = ("float32" if dtype in HALVES else dtype) if grad else ""
    return Layout(**checked, dtype=dtype, grad_dtype=grad_dtype)


def _on_gpu(device: str) -> bool:
    if device == "cpu":
        return False
    name, _, index = str(device).partition(":")
    if name != "cuda" or (index and not index.isdigit()):
        raise wrong_option(_NAME, "device", device, "'cpu', 'cuda' or 'cuda:<n>'")
    return True


def _zeros(
    shape: tuple[int, ...],
    dtype: np.dtype,
    device: str,
    pinned: bool = False,
    stream_id: int = 0,
) -> Any:
    if device == "cpu":
        return np.zeros(shape, dtype)
    return cuda.pinned(shape, dtype) if pinned else cuda.zeros(shape, dtype, device, stream_id)


def _to_host(a: Any, device: str) -> np.ndarray:
    if device == "cpu":
        return a
    with cuda.on(device) as cp:
        cp.cuda.get_current_stream().synchronize()  # pinned tables are read as they are
        return a if isinstance(a, np.ndarray) else cp.asnumpy(a)


def _fill(a: Any, values: np.ndarray, device: str) -> None:
    if device == "cpu":
        a[...] = values
        return
    with cuda.on(device) as cp:
        cp.cuda.get_current_stream().synchronize()
        a[...] = values if isinstance(a, np.ndarray) else cp.asarray(values)


def _recover(file: StoreFile) -> None:
    """Forget what may be torn."""
    arrays = file.arrays
    if not file.same_boot:
        arrays["ages"][...] = -1
    for table, ages in zip(arrays["tables"], arrays["ages"], strict=True):
        table[ages < 0] = 0
    if "grad_tables" in arrays:
        arrays["grad_tables"][...] = 0
    file.flush(file.step)
