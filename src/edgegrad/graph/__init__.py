"""Graph structs: compressed columns by destination, checked once, opaque to operators."""

from edgegrad.graph.convert import from_coo, from_scipy, to_scipy
from edgegrad.graph.make import make_bipartite_csc, make_bipartite_csc_hg, make_csc, make_csc_hg
from edgegrad.graph.types import (
    Graph,
    bipartite_csc_hg_int32,
    bipartite_csc_hg_int64,
    bipartite_csc_int32,
    bipartite_csc_int64,
    csc_hg_int32,
    csc_hg_int64,
    csc_int32,
    csc_int64,
)

__all__ = [
    "Graph",
    "bipartite_csc_hg_int32",
    "bipartite_csc_hg_int64",
    "bipartite_csc_int32",
    "bipartite_csc_int64",
    "csc_hg_int32",
    "csc_hg_int64",
    "csc_int32",
    "csc_int64",
    "from_coo",
    "from_scipy",
    "make_bipartite_csc",
    "make_bipartite_csc_hg",
    "make_csc",
    "make_csc_hg",
    "to_scipy",
]
