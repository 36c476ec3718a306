"""Which arguments a function takes, and which of them are variables."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from edgegrad.errors import wrong_type, wrong_value

_EXAMPLE = '"(a, b, +, k) ~> (loss, aux)", or [["a", "b"], ["loss"]]'
# A parameter's name, and the place in it if it takes what is left of the positional arguments.
Variable = tuple[str, "int | None"]


@dataclass(frozen=True)
class Signature:
    """Parameters of a function; names of its outputs if they are known."""

    parameters: inspect.Signature
    outputs: tuple[str, ...] = ()

    @classmethod
    def of(cls, where: str, function: Callable[..., Any], given: Any = None) -> Signature:
        """Take the signature given as text or lists, or read it from the function."""
        if not callable(function):
            raise wrong_type(where, "function", f"type {type(function).__name__}", "a callable")
        if given is not None:
            sides = _sides(where, given)
            return cls(inspect.Signature(_parameters(where, sides[0])), tuple(sides[1]))
        try:
            return cls(inspect.signature(function))
        except (TypeError, ValueError):
            has = "none, and the function does not tell its own"
            raise wrong_value(where, "signature", has, _EXAMPLE) from None

    def bind(self, where: str, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Return arguments by parameter, defaults included."""
        try:
            bound = self.parameters.bind(*args, **keywords)
        except TypeError as error:
            raise TypeError(f"{where}: {error}") from None
        bound.apply_defaults()
        return bound

    def variables(self, where: str, given: Any) -> tuple[Variable, ...]:
        """Resolve variables: None for the first argument, a name, an index, or several of them."""
        asked: list[Any] = [0] if given is None else [given] if is_one(given) else list(given)
        if not asked:
            raise wrong_value(where, "variables", "no entry", self._choices())
        found = [self._variable(where, v) for v in asked]
        for i, v in enumerate(found):
            if v in found[:i]:
                raise wrong_value(where, "variables", f"{v[0]!r} twice", self._choices())
        return tuple(found)

    def _variable(self, where: str, given: Any) -> Variable:
        parameters = self.parameters.parameters
        positional = [n for n, p in parameters.items() if p.kind in _POSITIONAL]
        rest = [n for n, p in parameters.items() if p.kind is inspect.Parameter.VAR_POSITIONAL]
        if isinstance(given, int) and not isinstance(given, bool) and given >= 0:
            if given < len(positional):
                return positional[given], None
            if rest:
                return rest[0], given - len(positional)
        elif isinstance(given, str) and given in parameters and given not in rest:
            return given, None
        raise wrong_value(where, "variables", repr(given), self._choices())

    def _choices(self) -> str:
        names = list(self.parameters.parameters)
        return f"names or indices of arguments, of {', '.join(names) or 'which there are none'}"


def is_one(variables: Any) -> bool:
    """Whether variables name one argument, whose derivative is then no tuple."""
    return variables is None or isinstance(variables, str | int)


_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def _sides(where: str, given: Any) -> tuple[list[str], list[str]]:
    """Return the names of both sides of a signature in either form."""
    if isinstance(given, str):
        parts = given.split("~>")
        sides = [part.strip() for part in parts]
        if len(sides) == 2 and all(s[:1] == "(" and s[-1:] == ")" for s in sides):
            names = [[n.strip() for n in s[1:-1].split(",") if n.strip()] for s in sides]
            return names[0], names[1]
    elif isinstance(given, Sequence) and len(given) == 2 and all(map(_are_names, given)):
        return list(given[0]), list(given[1])
    raise wrong_value(where, "signature", repr(given), _EXAMPLE)


def _are_names(side: Any) -> bool:
    is_list = isinstance(side, Sequence) and not isinstance(side, str)
    return is_list and all(isinstance(name, str) for name in side)


def _parameters(where: str, names: list[str]) -> list[inspect.Parameter]:
    kind, found = inspect.Parameter.POSITIONAL_OR_KEYWORD, []
    for name in names:
        if name == "+":
            kind = inspect.Parameter.KEYWORD_ONLY
        elif not name.isidentifier() or name in (p.name for p in found):
            has = f"{name!r} among its names"
            raise wrong_value(where, "signature", has, f"names, each once, as in {_EXAMPLE}")
        else:
            found.append(inspect.Parameter(name, kind))
    return found
