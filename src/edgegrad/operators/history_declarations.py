"""What the operators of stores take; they have no graph and no derivative."""

from __future__ import annotations

from edgegrad.operator import Arg, Operator

_SOURCE = "Fey et al. 2021, arXiv:2106.05609; Euler's ScalableGCN"
_ONCE = "16 bytes on a GPU, none on the host"
_PER_ID = "16 bytes per id; on the host 40, none if ids increase"


def _ids(name: str, axis: str) -> Arg:
    return Arg(name, (axis,), dtype="int32|int64")


def _rows(name: str, axis: str) -> Arg:
    return Arg(name, (axis, "dim"), dtype="R", column=True, narrower=True)


def _store(name: str, changed: bool = True) -> Arg:
    return Arg(name, ("n_rows", "dim"), column=True, mapped=True, changed=changed)


def _age(changed: bool) -> Arg:
    optional = changed
    return Arg(
        "age",
        ("n_rows",),
        dtype="int64",
        optional=optional,
        keyword=optional,
        mapped=True,
        changed=changed,
    )


PULL = Operator(
    name="history_pull",
    outputs=(_rows("output", "n_ids"),),
    inputs=(_store("store", changed=False), _ids("ids", "n_ids")),
    graphs=(),
    single=True,
    source=_SOURCE,
    scratch=_ONCE,
)
PUSH = Operator(
    name="history_push",
    outputs=(),
    inputs=(_store("store"), _ids("ids", "n_ids"), _rows("rows", "n_ids"), _age(changed=True)),
    graphs=(),
    single=True,
    source=_SOURCE,
    scratch=_PER_ID,
)
ACCUMULATE_GRAD = Operator(
    name="history_accumulate_grad",
    outputs=(),
    inputs=(_store("grad_store"), _ids("ids", "n_ids"), _rows("grad_rows", "n_ids")),
    graphs=(),
    single=True,
    source=_SOURCE,
    scratch=_PER_ID,
)
TAKE_GRAD = Operator(
    name="history_take_grad",
    outputs=(_rows("output", "n_ids"),),
    inputs=(_store("grad_store"), _ids("ids", "n_ids")),
    graphs=(),
    single=True,
    source=_SOURCE,
    scratch=_PER_ID,
)
PUSH_PULL = Operator(
    name="history_push_pull",
    outputs=(_rows("output", "n_pull_ids"),),
    inputs=(
        _store("store"),
        _ids("push_ids", "n_push_ids"),
        _rows("rows", "n_push_ids"),
        _ids("pull_ids", "n_pull_ids"),
    ),
    graphs=(),
    single=True,
    source=_SOURCE,
    scratch=_PER_ID,
)
STALE = Operator(
    name="history_stale",
    outputs=(Arg("output_mask", ("n_ids",), dtype="bool"),),
    inputs=(_age(changed=False), _ids("ids", "n_ids")),
    graphs=(),
    single=True,
    source=_SOURCE,
    scratch=_ONCE,
)
STORE_OPERATORS = (PULL, PUSH, ACCUMULATE_GRAD, TAKE_GRAD, PUSH_PULL, STALE)
