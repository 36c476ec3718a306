"""Graph operators with explicit gradients, for any array library, on GPU and CPU."""

from edgegrad import operators
from edgegrad.config import __version__, set_num_threads, show_config
from edgegrad.errors import ArgumentError, BackendError, DerivativeError
from edgegrad.graph import (
    bipartite_csc_hg_int32,
    bipartite_csc_hg_int64,
    bipartite_csc_int32,
    bipartite_csc_int64,
    csc_hg_int32,
    csc_hg_int64,
    csc_int32,
    csc_int64,
    from_coo,
    from_scipy,
    make_bipartite_csc,
    make_bipartite_csc_hg,
    make_csc,
    make_csc_hg,
    to_scipy,
)
from edgegrad.history import HistoryStore
from edgegrad.operators import AggOp
from edgegrad.partitioning import Batch, batches, partition
from edgegrad.sparse import sparse_matmul
from edgegrad.transforms import (
    Ascent,
    array_namespace,
    ascend,
    check_gradient,
    gradient,
    hvp,
    jacobian,
    value_and_gradient,
)

__all__ = [
    "AggOp",
    "ArgumentError",
    "Ascent",
    "BackendError",
    "Batch",
    "DerivativeError",
    "HistoryStore",
    "__version__",
    "array_namespace",
    "ascend",
    "batches",
    "bipartite_csc_hg_int32",
    "bipartite_csc_hg_int64",
    "bipartite_csc_int32",
    "bipartite_csc_int64",
    "check_gradient",
    "csc_hg_int32",
    "csc_hg_int64",
    "csc_int32",
    "csc_int64",
    "from_coo",
    "from_scipy",
    "gradient",
    "hvp",
    "jacobian",
    "make_bipartite_csc",
    "make_bipartite_csc_hg",
    "make_csc",
    "make_csc_hg",
    "operators",
    "partition",
    "set_num_threads",
    "show_config",
    "sparse_matmul",
    "to_scipy",
    "value_and_gradient",
]
