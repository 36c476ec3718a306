"""Calls of explicit operators as values: all but the graph and the arrays.

Front ends that record what they do by plain data (JAX, HIPS autograd) record these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

from edgegrad.differentiation.front import Arrays
from edgegrad.differentiation.registry import Derivatives, Sizes, derivatives
from edgegrad.differentiation.second import Gradients
from edgegrad.differentiation.shapes import (
    Result,
    Shape,
    backward_results,
    forward_results,
    read_by,
    told,
)


@dataclass(frozen=True)
class Call:
    """A call of one half of an operator; calls that do the same are equal.

    `options` has all of them, in the order of the operator's. `shapes` and `dtypes` are those of
    forward's inputs, in their order, None for those that are None. `asked` are the optional outputs
    to write, or the inputs whose gradients are.
    """

    name: str
    half: Literal["fwd", "bwd"]
    options: tuple[Any, ...]
    shapes: tuple[tuple[int, ...] | None, ...]
    dtypes: tuple[str | None, ...]
    asked: tuple[str, ...] = ()

    @classmethod
    def forward(
        cls, d: Derivatives, options: tuple[Any, ...], inputs: Arrays, asked: Sequence[str] = ()
    ) -> Call:
        """Describe the forward call with all these options, in order, and inputs by name."""
        arrays = [inputs.get(a.name) for a in d.op.inputs]
        return cls(
            d.name,
            "fwd",
            options,
            tuple(None if a is None else tuple(a.shape) for a in arrays),
            tuple(None if a is None else str(a.dtype) for a in arrays),
            tuple(asked),
        )

    def backward(self, asked: Sequence[str]) -> Call:
        """Describe the backward call of a forward call, for the gradients of these inputs."""
        return replace(self, half="bwd", asked=tuple(asked))

    @cached_property
    def d(self) -> Derivatives:
        """The registration."""
        return derivatives(self.name)

    @cached_property
    def chosen(self) -> dict[str, Any]:
        """The options by name."""
        return dict(zip(self.d.options, self.options, strict=True))

    @cached_property
    def shape_of(self) -> dict[str, Shape | None]:
        """The shape of every input of forward."""
        return dict(zip((a.name for a in self.d.op.inputs), self.shapes, strict=True))

    @cached_property
    def dtype_of(self) -> dict[str, str | None]:
        """The dtype of every input of forward."""
        return dict(zip((a.name for a in self.d.op.inputs), self.dtypes, strict=True))

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        """Names of the outputs that a forward call writes; what it saves comes after them."""
        return tuple(a.name for a in self.d.op.outputs if not a.optional or a.name in self.asked)

    @cached_property
    def written(self) -> tuple[str, ...]:
        """Names of all that a forward call writes."""
        return (*self.outputs, *self.d.saves(self.chosen))

    @cached_property
    def kept(self) -> tuple[str, ...]:
        """Names of the inputs, outputs and saved arrays that the backward of this call reads."""
        needed = (*self.d.reads(self.chosen), *self.d.saves(self.chosen))
        return tuple(name for name in read_by(self.d) if name in needed)

    def results(self, counts: Sizes, index_dtype: str) -> tuple[Result, ...]:
        """Return what the call writes on a graph of these sizes; check the shapes and dtypes."""
        if self.half == "fwd":
            return forward_results(
                self.d, counts, index_dtype, self.chosen, self.shape_of, self.dtype_of, self.asked
            )
        dtypes = {k: t for k, t in self.dtype_of.items() if k in self.asked and t is not None}
        return backward_results(self.d, self.shape_of, dtypes)

    @cached_property
    def function(self) -> Callable[..., None]:
        """The explicit function."""
        return self.d.fwd if self.half == "fwd" else self.d.bwd

    def arguments(self, counts: Sizes) -> dict[str, Any]:
        """Return its arguments but the graph and the arrays, which are None."""
        if not self.d.op.sizes.get(self.half):
            return self._fixed.copy()
        numbers = told(self.d, self.half, counts, self.chosen, self.shape_of)
        return {**self._fixed, **numbers}

    @cached_property
    def _fixed(self) -> dict[str, Any]:
        args = self.d.op.fwd if self.half == "fwd" else self.d.op.bwd
        return {**dict.fromkeys(a.name for a in args), **self.chosen}

    def gradients_of_outputs(self, cotangents: Mapping[str, Any]) -> dict[str, Any]:
        """Return the gradients that backward reads, by its names, from those of the outputs."""
        found = {a.grad: cotangents.get(a.name) for a in self.d.op.outputs}
        return {name: g for name, g in found.items() if g is not None}

    def to_differentiate(
        self,
        graph: Any,
        reads: Arrays,
        cotangents: Mapping[str, Any],
        needed: Sequence[str],
    ) -> Gradients:
        """Describe this backward call for `second_derivatives`.

        Parameters
        ----------
        graph
            What the front end takes for one.
        reads
            The arrays it read, by its names.
        cotangents
            Those of the gradients it wrote, by the input's name.
        needed
            Names of the arrays read whose gradients are asked for.
        """
        op = self.d.op
        results = [a.name for a in op.outputs if a.name in self.d.kept]
        return Gradients(
            graph=graph,
            options=self.chosen,
            outputs={a.name: reads.get(a.grad) for a in op.outputs},
            inputs={a.name: reads.get(a.name) for a in op.inputs},
            results={k: reads.get(k) for k in results},
            shapes=self.shape_of,
            cotangents={a.name: cotangents.get(a.name) for a in self.d.variables},
            needed=needed,
        )

    def gradients_of_reads(self, found: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """Return what `second_derivatives` found by the names of the arrays read."""
        by_name = {a.grad: found["outputs"].get(a.name) for a in self.d.op.outputs}
        by_name.update(found.get("inputs", {}))
        by_name.update(found.get("results", {}))
        return {name: g for name, g in by_name.items() if g is not None}


class CallFront:
    """What the fronts share that record calls and whose arrays have NumPy's functions, in `xp`."""

    xp: Any

    def zeros(self, shape: Sequence[int], like: Any) -> Any:
        """See `Front.zeros`."""
        return self.xp.zeros(tuple(shape), like.dtype)

    def ones(self, shape: Sequence[int], like: Any) -> Any:
        """See `Front.ones`."""
        return self.xp.ones(tuple(shape), like.dtype)

    def cast(self, array: Any, like: Any) -> Any:
        """See `Front.cast`."""
        return array if array.dtype == like.dtype else array.astype(like.dtype)

    def accurate(self, array: Any) -> Any:
        """See `Front.accurate`."""
        return array.astype("float32") if array.dtype.itemsize == 2 else array

    def where(self, condition: Any, yes: Any, no: Any) -> Any:
        """See `Front.where`."""
        return self.xp.where(condition, yes, no)

    def exp(self, array: Any) -> Any:
        """See `Front.exp`."""
        return self.xp.exp(array)

    def tanh(self, array: Any) -> Any:
        """See `Front.tanh`."""
        return self.xp.tanh(array)

    def concatenate(self, arrays: Sequence[Any], axis: int) -> Any:
        """See `Front.concatenate`."""
        return self.xp.concatenate(arrays, axis=axis)


def backward_call(
    d: Derivatives, options: Mapping[str, Any], inputs: Arrays, gradient: Any, wanted: Sequence[str]
) -> tuple[Call, dict[str, Any]]:
    """Return the backward call that `Front.backward` makes, and the arrays it reads."""
    asked = [a.name for a in d.variables if a.name in wanted]
    call = Call.forward(d, d.values(options), inputs).backward(asked)
    reads = call.gradients_of_outputs({d.op.outputs[0].name: gradient})
    reads |= {k: inputs[k] for k in call.kept if inputs.get(k) is not None}
    return call, reads
