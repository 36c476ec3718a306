"""Calls of the explicit operators from compiled functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from edgegrad.differentiation.calls import Call
from edgegrad.differentiation.front import Arrays
from edgegrad.differentiation.shapes import Result
from edgegrad.errors import wrong_type
from edgegrad.jax.graphs import Reference, struct_of
from edgegrad.jax.native import TARGET, registered


class Kernel:
    """A call with the names of its arrays, as compiled functions refer to it."""

    def __init__(self, call: Call, arrays: Arrays, results: Sequence[Result]) -> None:
        self.call, self.results = call, results
        self.dtypes = [str(a.dtype) for a in arrays.values()]
        self.names = (*arrays, *(r.name for r in results))

    def run(self, token: int, arrays: Sequence[Any]) -> None:
        """Make the call on arrays in host memory, those to read first; nothing is kept of them."""
        graph = struct_of(token)
        arguments = self.call.arguments({} if graph is None else graph.sizes)
        arguments.update(zip(self.names, arrays, strict=True))
        if graph is not None:
            arguments["graph"] = graph
        self.call.function(**arguments)

    def on_numpy(self, token: Any, *read: Any) -> tuple[np.ndarray, ...]:
        """Make the call for every element of the axes that vmap put in front, of size 1 or all."""
        n = np.ndim(token) - 1
        arrays = [np.asarray(a) for a in (token, *read)]
        arrays[1:] = map(_of_words, arrays[1:], self.dtypes)
        lead = np.broadcast_shapes(*(a.shape[:n] for a in arrays))
        made = tuple(np.empty((*lead, *r.shape), r.dtype) for r in self.results)
        for at in np.ndindex(lead):
            number, *one = (
                a[tuple(i if size > 1 else 0 for i, size in zip(at, a.shape, strict=False))]
                for a in arrays
            )
            self.run(int(number[0]), [*one, *(a[at] for a in made)])
        return made


# A callback runs in a thread of its own, where JAX may think that there are no types of 64 bits and
# narrow its arguments: they go there as pairs of 32-bit words.
def _as_words(a: Any) -> Any:
    return jax.lax.bitcast_convert_type(a, jnp.uint32) if a.dtype.itemsize == 8 else a


def _of_words(a: np.ndarray, dtype: str) -> np.ndarray:
    return a if a.dtype == dtype else np.ascontiguousarray(a).view(dtype)[..., 0]


_KERNELS: list[Kernel] = []
_NUMBERS: dict[tuple[Call, tuple[str, ...]], int] = {}


def launch(call: Call, ref: Reference, arrays: Arrays) -> tuple[Any, ...]:
    """Put a call into the function that is being compiled; return what it writes.

    Parameters
    ----------
    call
        What is called.
    ref
        The graph.
    arrays
        What it reads, by the names of the explicit function.
    """
    results = call.results(ref.sizes, ref.index_dtype)
    if not results:
        return ()
    for r in results:
        if jax.dtypes.canonicalize_dtype(r.dtype) != r.dtype:
            expected = "int32 ids, or jax_enable_x64 set"
            raise wrong_type(call.d.op.functions["fwd"], "graph", "int64 ids", expected)
    number = _NUMBERS.setdefault((call, tuple(arrays)), len(_KERNELS))
    if number == len(_KERNELS):
        _KERNELS.append(Kernel(call, arrays, results))
    token = jnp.zeros(1, jnp.int32) if ref.token is None else ref.token
    shapes = [jax.ShapeDtypeStruct(r.shape, r.dtype) for r in results]
    method: dict[str, Any] = {"vmap_method": "expand_dims"}
    if registered(_run):
        target = jax.ffi.ffi_call(TARGET, shapes, **method)
        return tuple(
            target(
                token,
                *arrays.values(),
                kernel=np.int64(number),
                rank=np.int64(len(results[0].shape)),
            )
        )
    words = map(_as_words, arrays.values())
    return tuple(jax.pure_callback(_KERNELS[number].on_numpy, shapes, token, *words, **method))


def _run(kernel: int, token: int, arrays: Sequence[Any]) -> None:
    _KERNELS[kernel].run(token, arrays)
