"""`pylibcugraphops` by its published names, so that code written for it runs on edgegrad.

``install()`` before the first import of that code; PyTorch's part is there if PyTorch is.
"""

from __future__ import annotations

import importlib.util
from types import ModuleType
from typing import Any

import edgegrad
from edgegrad.compat import modules

_FACTORIES = ("make_csc", "make_bipartite_csc", "make_csc_hg", "make_bipartite_csc_hg")


def install() -> ModuleType:
    """Make ``import pylibcugraphops`` find edgegrad; return that module.

    It has ``make_csc`` and its kind, ``AggOp``, ``operators`` (the explicit functions), and
    ``pytorch`` with ``CSC``, ``HeteroCSC`` and ``operators`` (functions under autograd).

    Raises
    ------
    RuntimeError
        If another `pylibcugraphops` is imported already.
    """
    graphs = {n: getattr(edgegrad, n) for n in edgegrad.__all__ if "csc" in n and "int" in n}
    factories = {name: getattr(edgegrad, name) for name in _FACTORIES}
    operators: dict[str, Any] = {"AggOp": edgegrad.AggOp}
    for op in edgegrad.operators.OPERATORS:
        for name in op.functions.values():
            operators[name] = getattr(edgegrad.operators, name)
    tree: dict[str, dict[str, Any]] = {
        "pylibcugraphops": {"AggOp": edgegrad.AggOp, **graphs, **factories},
        "pylibcugraphops.operators": operators,
    }
    if importlib.util.find_spec("torch") is not None:
        from edgegrad.compat import pylibcugraphops_torch as pytorch

        tree["pylibcugraphops.pytorch"] = {"CSC": pytorch.CSC, "HeteroCSC": pytorch.HeteroCSC}
        tree["pylibcugraphops.pytorch.operators"] = pytorch.OPERATORS
    return modules.install(tree)
