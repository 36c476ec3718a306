"""Stores of rows of earlier steps: public functions and host calls."""

from __future__ import annotations

from typing import Any

from edgegrad import _host
from edgegrad.errors import wrong_option, wrong_type
from edgegrad.graph.make import count
from edgegrad.operator import Call, Operator, check
from edgegrad.operators import history_plans
from edgegrad.operators.history_declarations import (
    ACCUMULATE_GRAD,
    PULL,
    PUSH,
    PUSH_PULL,
    STALE,
    TAKE_GRAD,
)
from edgegrad.operators.history_fault import Fault, raise_fault
from edgegrad.operators.history_plans import DUPLICATES

# These are steps of an algorithm, not functions with a derivative: no pair of forward and backward.
OPERATORS: tuple[Operator, ...] = ()
KERNELS = history_plans.KERNELS


def history_pull(
    output: Any,
    store: Any,
    ids: Any,
    stream_id: int = 0,
    *,
    default: float = 0.0,
    validate: bool = True,
) -> None:
    r"""Read rows of a store.

    .. math:: y_i = H_{id_i}

    Parameters
    ----------
    output : array (n_ids, dim), R
        Written.
    store : array (n_rows, dim), T
        Read. Beside a GPU also pinned host memory that is mapped, which kernels then read in place.
    ids : array (n_ids), int32 or int64
        Rows to read, in any order, also more than once; -1 reads `default`.
    stream_id : int
        CUDA stream handle the work goes on; 0 is the legacy default stream.
    default : float
        What id -1 reads.
    validate : bool
        On a GPU True waits on this stream for what the check of the ids has found. False does not;
        a wrong call then does nothing and says nothing. The host always raises.

    Raises
    ------
    ArgumentError
        `TypeError` for kinds and dtypes, `ValueError` for shapes, layouts, devices and values,
        `IndexError` for an id that is neither -1 nor a row; nothing has been written then.

    Notes
    -----
    Dtypes: T is float16, bfloat16, float32 or float64; R is T, or one of T and R is float32 and the
    other a half type. Where dim is 1 an array may have one axis. Store rows may be apart.
    Determinism: run-to-run, bitwise. Scratch: 16 bytes on a GPU, none on the host.
    Source: Fey et al. 2021, arXiv:2106.05609; Euler's ScalableGCN.
    """
    given = {"output": output, "store": store, "ids": ids}
    call = check(PULL, "fwd", None, given, stream_id=stream_id)
    fill = _number(call.where, "default", default)
    a = call.arrays
    if call.on_host:
        fault = Fault(*_host.history_pull(a["output"], a["store"], a["ids"], fill))
    else:
        fault = history_plans.pull(call, fill, validate, stream_id)
    raise_fault(call, fault)


def history_push(
    store: Any,
    ids: Any,
    rows: Any,
    stream_id: int = 0,
    *,
    duplicates: str = "error",
    momentum: float = 1.0,
    age: Any = None,
    step: int | None = None,
    validate: bool = True,
) -> None:
    r"""Overwrite rows of a store.

    .. math:: H_r \leftarrow (1 - m) H_r + m v_r

    where v_r is the row whose id is r.

    Parameters
    ----------
    store : array (n_rows, dim), T
        Changed in place; rows that no id names keep every bit.
    ids : array (n_ids), int32 or int64
        Rows to write; -1 writes nothing.
    rows : array (n_ids, dim), R
        What to write. May be overwritten once the stream has passed.
    stream_id
        As in `history_pull`.
    duplicates : {"error", "last", "mean"}
        What several rows of one id mean: a mistake unless they are equal bit by bit, the one that
        comes last in the batch, or their mean.
    momentum : float
        The share of the new row, in (0, 1]; with 1 the old row is not read.
    age : array (n_rows), int64, or None
        Set to `step` where a row is written; on the host -1 meanwhile, so that a row which the end
        of the process has torn is known in a memory map that outlives it.
    step : int or None
        The number of the step, from 0; needed with `age`.
    validate : bool
        As in `history_pull`.

    Raises
    ------
    ArgumentError
        As in `history_pull`; `ValueError` also for duplicates that differ. No row has changed then.

    Notes
    -----
    Dtypes as in `history_pull`. Determinism: run-to-run, bitwise, also of the mean. Scratch: 16
    bytes per id (40 on the host, none if ids increase).
    Source: Fey et al. 2021, arXiv:2106.05609; Euler's ScalableGCN.
    """
    given = {"store": store, "ids": ids, "rows": rows, "age": age}
    call = check(PUSH, "fwd", None, given, stream_id=stream_id)
    of = _duplicates(call.where, duplicates)
    if (age is None) != (step is None):
        raise wrong_option(call.where, "step", step, "a step beside `age`, and none without it")
    at = 0 if step is None else count(call.where, "step", step)
    share = _number(call.where, "momentum", momentum)
    if not 0 < share <= 1:
        raise wrong_option(call.where, "momentum", momentum, "a number in (0, 1]")
    write = history_plans.Write(of, 1 - share, share, at)
    _scatter(call, "store", "rows", write, validate, stream_id)


def history_accumulate_grad(
    grad_store: Any,
    ids: Any,
    grad_rows: Any,
    stream_id: int = 0,
    *,
    scale: float = 1.0,
    validate: bool = True,
) -> None:
    r"""Add gradients of rows that were pulled to the store of gradients.

    .. math:: G_r \leftarrow G_r + s \sum_{i: id_i = r} g_i

    Parameters
    ----------
    grad_store : array (n_rows, dim), T
        Changed in place.
    ids : array (n_ids), int32 or int64
        The rows that were pulled, in any order, also more than once; -1 adds nothing.
    grad_rows : array (n_ids, dim), R
        Their gradients.
    stream_id
        As in `history_pull`.
    scale : float
        A factor of the sum, such as the share of a batch where losses are means over batches.
    validate : bool
        As in `history_pull`.

    Raises
    ------
    ArgumentError
        As in `history_pull`. No row has changed then.

    Notes
    -----
    Dtypes as in `history_pull`. Determinism: run-to-run, bitwise, and for any order of the batch:
    the sum over equal ids is folded so that its terms may come in any order. Scratch as in
    `history_push`.
    Source: Fey et al. 2021, arXiv:2106.05609; Euler's ScalableGCN.
    """
    given = {"grad_store": grad_store, "ids": ids, "grad_rows": grad_rows}
    call = check(ACCUMULATE_GRAD, "fwd", None, given, stream_id=stream_id)
    factor = _number(call.where, "scale", scale)
    write = history_plans.Write(history_plans.SUM, 1.0, factor, 0)
    _scatter(call, "grad_store", "grad_rows", write, validate, stream_id)


def history_take_grad(
    output: Any,
    grad_store: Any,
    ids: Any,
    stream_id: int = 0,
    *,
    clear: bool = True,
    max_norm: float | None = None,
    validate: bool = True,
) -> None:
    r"""Read rows of the store of gradients and leave zeros behind, in one operation.

    .. math:: y_i = G_{id_i} \text{ where } i \text{ is the first of its id, else } 0

    What is taken is added to the cotangent of the row's live value: the vector-Jacobian product
    that Euler writes as the loss ``sum(h * stop_gradient(g))``.

    Parameters
    ----------
    output : array (n_ids, dim), R
        Written.
    grad_store : array (n_rows, dim), T
        Set to 0 where a row is taken.
    ids : array (n_ids), int32 or int64
        Rows to take. The first position of an id gets the row, later ones get 0, and so does -1.
    stream_id
        As in `history_pull`.
    clear : bool
        False leaves the store as it is.
    max_norm : float or None
        Scale rows whose 2-norm is larger down to it; what is cut off is lost.
    validate : bool
        As in `history_pull`.

    Raises
    ------
    ArgumentError
        As in `history_pull`. No row has changed then.

    Notes
    -----
    Dtypes as in `history_pull`. Determinism: run-to-run, bitwise. Scratch as in `history_push`.
    Source: Fey et al. 2021, arXiv:2106.05609; Euler's ScalableGCN.
    """
    given = {"output": output, "grad_store": grad_store, "ids": ids}
    call = check(TAKE_GRAD, "fwd", None, given, stream_id=stream_id)
    norm = -1.0  # none
    if max_norm is not None:
        norm = _number(call.where, "max_norm", max_norm)
        if not norm >= 0:
            raise wrong_option(call.where, "max_norm", max_norm, "a number that is not negative")
    a = call.arrays
    if call.on_host:
        taken = _host.history_take(a["output"], a["grad_store"], a["ids"], bool(clear), norm)
        fault = Fault(*taken)
    else:
        fault = history_plans.take(call, bool(clear), norm, validate, stream_id)
    raise_fault(call, fault)


def history_push_pull(
    store: Any,
    push_ids: Any,
    rows: Any,
    output: Any,
    pull_ids: Any,
    stream_id: int = 0,
    *,
    push_first: bool = False,
    validate: bool = True,
) -> None:
    """Pull some rows and push others, in the order asked for.

    Parameters
    ----------
    store : array (n_rows, dim), T
        Changed in place.
    push_ids : array (n_push_ids), int32 or int64
        As `ids` in `history_push`; duplicates must be equal.
    rows : array (n_push_ids, dim), R
        What to write.
    output : array (n_pull_ids, dim), R
        Written.
    pull_ids : array (n_pull_ids), int32 or int64
        As `ids` in `history_pull`; -1 reads 0.
    stream_id
        As in `history_pull`.
    push_first : bool
        Whether the pull sees what is pushed.
    validate : bool
        As in `history_pull`.

    Raises
    ------
    ArgumentError
        As in the two functions. Both batches of ids are checked before anything is written.

    Notes
    -----
    Dtypes and scratch as in the two functions. Determinism: run-to-run, bitwise.
    Source: Fey et al. 2021, arXiv:2106.05609; Euler's ScalableGCN.
    """
    given = {"store": store, "push_ids": push_ids, "rows": rows}
    given |= {"output": output, "pull_ids": pull_ids}
    call = check(PUSH_PULL, "fwd", None, given, stream_id=stream_id)
    if not call.on_host:
        raise_fault(call, *history_plans.push_pull(call, bool(push_first), validate, stream_id))
        return
    a, n_rows = call.arrays, call.sizes["n_rows"]
    raise_fault(call, Fault(*_host.history_check(a["pull_ids"], n_rows, None)), "pull_ids")
    raise_fault(call, Fault(*_host.history_check(a["push_ids"], n_rows, a["rows"])), "push_ids")
    for pushes in (push_first, not push_first):
        if pushes:
            _host.history_scatter(
                a["store"], a["push_ids"], a["rows"], history_plans.LAST, 0.0, 1.0, None, 0
            )
        else:
            _host.history_pull(a["output"], a["store"], a["pull_ids"], 0.0)


def history_stale(
    output_mask: Any,
    age: Any,
    ids: Any,
    step: int,
    max_age: int,
    stream_id: int = 0,
    *,
    validate: bool = True,
) -> None:
    r"""Tell which rows are too old, or were never pushed.

    .. math:: y_i = (a_{id_i} < 0) \lor (step - a_{id_i} > max\_age)

    Parameters
    ----------
    output_mask : array (n_ids), bool
        Written.
    age : array (n_rows), int64
        The step each row was last pushed in, -1 for never.
    ids : array (n_ids), int32 or int64
        Rows to ask for; -1 is never stale.
    step : int
        The step it is now.
    max_age : int
        Steps a row may be old.
    stream_id
        As in `history_pull`.
    validate : bool
        As in `history_pull`.

    Raises
    ------
    ArgumentError
        As in `history_pull`.

    Notes
    -----
    Dtypes as above. Determinism: run-to-run, bitwise. Scratch as in `history_pull`.
    Source: Fey et al. 2021, arXiv:2106.05609; Euler's ScalableGCN.
    """
    given = {"output_mask": output_mask, "age": age, "ids": ids}
    call = check(STALE, "fwd", None, given, stream_id=stream_id)
    now, most = count(call.where, "step", step), count(call.where, "max_age", max_age)
    a = call.arrays
    if call.on_host:
        fault = Fault(*_host.history_stale(a["output_mask"], a["age"], a["ids"], now, most))
    else:
        fault = history_plans.stale(call, now, most, validate, stream_id)
    raise_fault(call, fault)


def _scatter(
    call: Call,
    store: str,
    rows: str,
    write: history_plans.Write,
    validate: bool,
    stream_id: int,
) -> None:
    a = call.arrays
    if call.on_host:
        fault = Fault(
            *_host.history_scatter(
                a[store], a["ids"], a[rows], write.of, write.keep, write.factor, a.get("age"),
                write.step,
            )
        )  # fmt: skip
    else:
        fault = history_plans.scatter(call, store, rows, write, validate, stream_id)
    raise_fault(call, fault)


def _duplicates(where: str, value: str) -> int:
    if not isinstance(value, str) or value not in DUPLICATES:
        raise wrong_option(where, "duplicates", value, " or ".join(map(repr, DUPLICATES)))
    return DUPLICATES[value]


def _number(where: str, name: str, value: Any) -> float:
    try:
        if isinstance(value, (str, bytes)):
            raise TypeError
        return float(value)
    except TypeError:
        raise wrong_type(where, name, f"type {type(value).__name__}", "a number") from None
