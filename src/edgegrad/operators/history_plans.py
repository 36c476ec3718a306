"""Launch plans of stores; kernels/history.cu says what its kernels expect."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from edgegrad.backends import cuda, rows
from edgegrad.interop import ArrayView
from edgegrad.operator import FLOATS, HALVES, Call
from edgegrad.operators.history_fault import Fault

_SOURCE = "history.cu"
_NO_FAULT = 2**63 - 1  # kNoFault

# What stands for several rows of one id: `of` in the kernels, -1 for a check that they are equal.
LAST, SUM, MEAN = range(3)
DUPLICATES = {"error": -1, "last": LAST, "mean": MEAN}


class Write(NamedTuple):
    """How rows get into a store: keep * old + factor * (what stands for the rows of an id)."""

    of: int
    keep: float
    factor: float
    step: int


def _widest(*dtypes: str) -> int:
    return cuda.MAX_ACCESS_BYTES // max(cuda.ITEM_SIZES[t] for t in dtypes)


_PAIRS = (
    *((t, t) for t in FLOATS),
    *((half, "float32") for half in HALVES),
    *(("float32", half) for half in HALVES),
)
_WIDE = [(s, r, v) for s, r in _PAIRS for v in (1, _widest(s, r))]
KERNELS = tuple(
    (_SOURCE, name)
    for name in (
        *(cuda.instance("history_check", i) for i in cuda.INDEX_DTYPES),
        *(cuda.instance("history_compare", i) for i in cuda.INDEX_DTYPES),
        *(cuda.instance("history_gather", *p) for p in _WIDE),
        *(cuda.instance("history_scatter", *p) for p in _WIDE),
        *(cuda.instance("history_stale", i) for i in cuda.INDEX_DTYPES),
    )
)


def pull(call: Call, fill: float, validate: bool, stream_id: int) -> Fault:
    """Enqueue a pull."""
    a = call.arrays
    batch = _Batch(call, "ids", stream_id, ordered=False)
    batch.gather(a["output"], a["store"], fill, False, -1.0)
    return batch.fault(validate)


def take(call: Call, clear: bool, max_norm: float, validate: bool, stream_id: int) -> Fault:
    """Enqueue a take."""
    a = call.arrays
    batch = _Batch(call, "ids", stream_id)
    batch.gather(a["output"], a["grad_store"], 0.0, clear, max_norm)
    return batch.fault(validate)


def scatter(
    call: Call, store: str, new: str, write: Write, validate: bool, stream_id: int
) -> Fault:
    """Enqueue a push or an accumulation."""
    a = call.arrays
    batch = _Batch(call, "ids", stream_id)
    if write.of < 0:
        batch.compare(a[new])
    batch.scatter(a[store], a[new], write, a.get("age"))
    return batch.fault(validate)


def push_pull(call: Call, push_first: bool, validate: bool, stream_id: int) -> tuple[Fault, str]:
    """Enqueue a push and a pull that do nothing if either is wrong; tell whose ids are."""
    a = call.arrays
    pulled = _Batch(call, "pull_ids", stream_id, ordered=False)
    n = int(pulled.n)
    pushed = _Batch(call, "push_ids", stream_id, behind=pulled)
    pushed.compare(a["rows"])
    for pushes in (push_first, not push_first):
        if pushes:
            pushed.scatter(a["store"], a["rows"], Write(LAST, 0.0, 1.0, 0), None)
        else:
            pulled.gather(a["output"], a["store"], 0.0, False, -1.0)
    fault = pushed.fault(validate)
    if fault.rule == Fault.IDS and fault.position >= n:
        return fault._replace(position=fault.position - n), "push_ids"
    return fault, "pull_ids" if fault.rule == Fault.IDS else "push_ids"


def stale(call: Call, step: int, max_age: int, validate: bool, stream_id: int) -> Fault:
    """Enqueue the look at ages."""
    batch = _Batch(call, "ids", stream_id, ordered=False)
    batch.stale(call.arrays["output_mask"], call.arrays["age"], step, max_age)
    return batch.fault(validate)


class _Batch:
    """Ids on their way through the kernels: checked, and sorted where rows are written."""

    def __init__(
        self,
        call: Call,
        ids: str,
        stream_id: int,
        *,
        ordered: bool = True,
        behind: _Batch | None = None,  # shares its faults; positions here come after those there
    ) -> None:
        self.call, self.stream_id, self.ids = call, stream_id, call.arrays[ids]
        self.n = np.int64(len(self.ids))
        self.order: Any = None
        with cuda.on(call.device, stream_id) as cp:
            self.faults = cp.full(2, _NO_FAULT, dtype=np.int64) if behind is None else behind.faults
            if ordered:
                order = cp.argsort(cp.asarray(self.ids), kind="stable")
                self.order = order.astype(np.int64, copy=False)
        base = np.int64(0) if behind is None else behind.n
        n_rows = np.int64(call.sizes["n_rows"])
        kernel = cuda.instance("history_check", self.ids.dtype)
        self._launch(kernel, 1, (self.faults.data.ptr, self.ids.ptr, self.n, n_rows, base))

    def compare(self, new: ArrayView) -> None:
        """Look for rows of one id that differ."""
        words = new.itemsize // 2
        row, width = new.strides[0] * words, self.call.sizes["dim"] * words
        kernel = cuda.instance("history_compare", self.ids.dtype)
        self._launch(
            kernel,
            cuda.lanes(width, 1),
            (
                self.faults.data.ptr, new.ptr, np.int64(row), self.ids.ptr, self._order,
                self.n, np.int64(width),
            ),
        )  # fmt: skip

    def gather(
        self, output: ArrayView, store: ArrayView, fill: float, clear: bool, max_norm: float
    ) -> None:
        """Read rows."""
        self._rows(
            "history_gather",
            store,
            output,
            (
                output.ptr, np.int64(output.strides[0]), store.ptr, np.int64(store.strides[0]),
                *self._batch_args(), np.float64(fill), np.int32(clear), np.float64(max_norm),
            ),
        )  # fmt: skip

    def scatter(self, store: ArrayView, new: ArrayView, write: Write, age: Any) -> None:
        """Write rows."""
        self._rows(
            "history_scatter",
            store,
            new,
            (
                store.ptr, np.int64(store.strides[0]), new.ptr, np.int64(new.strides[0]),
                *self._batch_args(), np.int32(max(write.of, LAST)), np.float64(write.keep),
                np.float64(write.factor), cuda.pointer(age), np.int64(write.step),
            ),
        )  # fmt: skip

    def stale(self, mask: ArrayView, age: ArrayView, step: int, max_age: int) -> None:
        """Look at ages."""
        self._launch(
            cuda.instance("history_stale", self.ids.dtype),
            1,
            (
                mask.ptr, age.ptr, self.ids.ptr, self.n, self.faults.data.ptr, np.int64(step),
                np.int64(max_age),
            ),
        )  # fmt: skip

    def fault(self, validate: bool) -> Fault:
        """Wait for what the checks have found, if that is wanted."""
        none = Fault(0, 0, 0)
        if not validate:
            return none
        with cuda.on(self.call.device, self.stream_id) as cp:
            of_ids, of_rows = (int(i) for i in cp.asnumpy(self.faults))
            if of_ids != _NO_FAULT:
                return Fault(Fault.IDS, of_ids, 0)
            if of_rows == _NO_FAULT:
                return none
            ids = cp.asnumpy(cp.asarray(self.ids)[: of_rows + 1])
        return Fault(Fault.ROWS, of_rows, int(np.flatnonzero(ids[:-1] == ids[-1])[-1]))

    @property
    def _order(self) -> int:
        return 0 if self.order is None else int(self.order.data.ptr)

    def _batch_args(self) -> tuple[Any, ...]:
        wide = np.int32(self.ids.dtype == "int64")
        return self.ids.ptr, wide, self._order, self.n, self.faults.data.ptr

    def _rows(self, name: str, store: ArrayView, new: ArrayView, args: tuple[Any, ...]) -> None:
        dim = self.call.sizes["dim"]
        widest = _widest(store.dtype, new.dtype)
        fits = all(cuda.vec_width(a.dtype, dim, a) % widest == 0 for a in (store, new))
        vec = widest if fits else 1
        kernel = cuda.instance(name, store.dtype, new.dtype, vec)
        self._launch(kernel, cuda.lanes(dim, vec), (*args, np.int32(dim)))

    def _launch(self, kernel: str, lanes: int, args: tuple[Any, ...]) -> None:
        spec = cuda.Launch(_SOURCE, kernel, rows.grid(int(self.n), lanes), rows.block(lanes), args)
        cuda.launch(spec, self.call.device, self.stream_id)
