"""Arrays nested in dicts, lists and tuples."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any


def leaves(tree: Any) -> Iterator[Any]:
    """Yield what is nested, in order."""
    if isinstance(tree, dict):
        for part in tree.values():
            yield from leaves(part)
    elif isinstance(tree, list | tuple):
        for part in tree:
            yield from leaves(part)
    else:
        yield tree


def mapped(function: Callable[[Any], Any], tree: Any) -> Any:
    """Return the same nest with the function's values in the places of what is nested."""
    if isinstance(tree, dict):
        return {k: mapped(function, part) for k, part in tree.items()}
    if isinstance(tree, list | tuple):
        parts = [mapped(function, part) for part in tree]
        if hasattr(tree, "_fields"):  # a named tuple
            return type(tree)(*parts)
        return tuple(parts) if isinstance(tree, tuple) else parts
    return function(tree)


def filled(tree: Any, values: Iterator[Any]) -> Any:
    """Return the same nest with the next values in the places of what is nested."""
    return mapped(lambda _: next(values), tree)
