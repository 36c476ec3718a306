"""Putting modules under names of others, so that code written for them finds edgegrad."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any

_OURS = "__edgegrad__"


def install(tree: Mapping[str, Mapping[str, Any]]) -> ModuleType:
    """Put modules into `sys.modules`; return the first.

    Parameters
    ----------
    tree
        What each module has, by its full name, packages before what they contain.

    Raises
    ------
    RuntimeError
        If a module of that name that is not ours is in use already.
    """
    for name in tree:
        known = sys.modules.get(name)
        if known is not None and not hasattr(known, _OURS):
            raise RuntimeError(f"{name} is imported already: install edgegrad's before it")
    for name, content in tree.items():
        module = ModuleType(name, f"edgegrad under the name of {name}.")
        module.__dict__.update(content)
        module.__dict__.update({_OURS: True, "__path__": []})
        sys.modules[name] = module
        package, _, last = name.rpartition(".")
        if package in sys.modules:
            setattr(sys.modules[package], last, module)
    return sys.modules[next(iter(tree))]
