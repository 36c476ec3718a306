"""What is wrong with a call of a store that only the values of its arrays show."""

from __future__ import annotations

from typing import NamedTuple

from edgegrad.errors import wrong_index, wrong_value
from edgegrad.graph.make import element
from edgegrad.operator import Call


class Fault(NamedTuple):
    """What the checks of ids and rows have found."""

    rule: int  # 0: nothing
    position: int
    before: int  # for rows: the earlier position of that id

    IDS = 1
    ROWS = 2


def raise_fault(call: Call, fault: Fault, ids: str = "ids") -> None:
    """Raise what was found, if anything; `ids` names the array of ids."""
    if not fault.rule:
        return
    i, n_rows = fault.position, call.sizes["n_rows"]
    value = element(call.arrays[ids], i)
    if fault.rule == Fault.IDS:
        expected = f"-1 or a row in [0, {n_rows})"
        raise wrong_index(call.where, f"{ids}[{i}]", f"the value {value}", expected)
    has = f"other values than `rows[{fault.before}]`, which is for row {value} of the store too"
    raise wrong_value(call.where, f"rows[{i}]", has, 'equal rows, or duplicates="last" or "mean"')
