"""How values along edges become one value for each destination."""

from __future__ import annotations

from enum import Enum
from typing import Any

from edgegrad.errors import wrong_option, wrong_type, wrong_value


class AggOp(Enum):
    """Aggregation operation; operators also accept its name in any case, such as ``"mean"``."""

    Sum = "sum"
    Mean = "mean"
    Min = "min"
    Max = "max"
    Var = "var"
    Std = "std"

    def __init__(self, value: str) -> None:
        # Plain attributes: every call asks for them, and members are slow to look up.
        self.has_winner = value in ("min", "max")  # one of the values, whose place is kept
        self.is_spread = value in ("var", "std")  # measures how far values are from their mean


ALL = tuple(AggOp)
BASIC = (AggOp.Sum, AggOp.Mean, AggOp.Min, AggOp.Max)


def agg_op(where: str, argument: str, value: Any, allowed: tuple[AggOp, ...] = ALL) -> AggOp:
    """Return the operation that `value` names."""
    for op in allowed:
        if value is op or (isinstance(value, str) and value.lower() == op.value):
            return op
    names = ", ".join(f"AggOp.{op.name}" for op in allowed)
    raise wrong_option(where, argument, value, f"{names} or such a name")


def check_extrema(where: str, argument: str, op: AggOp, array: Any) -> None:
    """Ask for the winners' places where there are winners, and refuse them elsewhere."""
    if op.has_winner and array is None:
        raise wrong_type(where, argument, "type NoneType", f"an array, since the operation is {op}")
    if array is not None and not op.has_winner:
        raise wrong_value(where, argument, "an array", f"None, since the operation is {op}")


def check_kept(where: str, op: AggOp, values: dict[str, Any], output: dict[str, Any]) -> None:
    """Ask for the arrays, by name, that the gradient of a variance reads."""
    needed = {**values, **(output if op is AggOp.Std else {})} if op.is_spread else {}
    for name, array in needed.items():
        if array is None:
            raise wrong_type(where, name, "type NoneType", f"an array, since the operation is {op}")
