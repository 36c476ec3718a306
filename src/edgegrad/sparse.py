"""One-call products with the sparse matrices of SciPy and CuPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from edgegrad.backends import cuda
from edgegrad.errors import wrong_type, wrong_value
from edgegrad.graph import from_scipy
from edgegrad.operator import FLOATS
from edgegrad.operators import spmm_fwd


def sparse_matmul(matrix: Any, x: Any) -> Any:
    """Multiply a sparse matrix with a vector or a dense matrix; the same result as ``matrix @ x``.

    Parameters
    ----------
    matrix : scipy.sparse or cupyx.scipy.sparse matrix or array of any format, (m, n)
        Duplicate entries count each.
    x : NumPy or CuPy array (n,) or (n, k), where the matrix is

    Returns
    -------
    array (m,) or (m, k)
        Of the type that NumPy promotes both dtypes to, which must be a real floating type; CuPy
        works on its current stream.

    Raises
    ------
    ArgumentError
        If one of them is not as described or their shapes do not fit.

    Notes
    -----
    For repeated products make the graph once, with `from_scipy`, and call `operators.spmm_fwd`.
    """
    where, on_gpu = "sparse_matmul", type(matrix).__module__.startswith("cupyx.")
    xp: Any = cuda.cupy() if on_gpu else np
    if not isinstance(x, xp.ndarray):
        raise wrong_type(where, "x", f"type {type(x).__name__}", f"a {xp.__name__} array")
    # CuPy's other formats do not iterate over entries without reading them back.
    graph, values = from_scipy(matrix.tocsr() if on_gpu else matrix)
    if x.ndim not in (1, 2) or x.shape[0] != graph.n_src_nodes:
        expected = f"({graph.n_src_nodes},) or ({graph.n_src_nodes}, k)"
        raise wrong_value(where, "x", f"shape {x.shape}", expected)
    dtype = np.promote_types(values.dtype, x.dtype)
    if dtype.name not in FLOATS:
        has = f"dtype {x.dtype} beside a matrix of {values.dtype}"
        raise wrong_type(where, "x", has, f"a product of {', '.join(FLOATS)}")
    dense = xp.ascontiguousarray(x if x.ndim == 2 else x[:, None], dtype=dtype)
    output = xp.empty((graph.n_dst_nodes, dense.shape[1]), dtype=dtype)
    stream_id = int(xp.cuda.get_current_stream().ptr) if on_gpu else 0
    values = xp.ascontiguousarray(values, dtype=dtype)
    spmm_fwd(output, values, dense, graph, stream_id=stream_id)
    return output if x.ndim == 2 else output[:, 0]
