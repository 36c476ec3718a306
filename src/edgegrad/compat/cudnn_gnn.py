"""`cudnn.gnn` by its published names: `CscGraph`, `mha_gat` and `mha_gat_v2`."""

from __future__ import annotations

import importlib.util
from types import ModuleType

from edgegrad.compat import modules
from edgegrad.torch import CscGraph, mha_gat, mha_gat_v2

__all__ = ["CscGraph", "install", "mha_gat", "mha_gat_v2"]


def install() -> ModuleType:
    """Make ``from cudnn.gnn import ...`` find these; return the module `cudnn.gnn`.

    A `cudnn` that is installed keeps all else that it has.
    """
    names = {"CscGraph": CscGraph, "mha_gat": mha_gat, "mha_gat_v2": mha_gat_v2}
    tree = {"cudnn.gnn": names}
    if importlib.util.find_spec("cudnn") is not None:
        importlib.import_module("cudnn")
    else:
        tree = {"cudnn": {}, **tree}
    modules.install(tree)
    return importlib.import_module("cudnn.gnn")
