"""What a framework's front end brings to the rules of second derivatives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from edgegrad.differentiation.registry import Derivatives, Options, Sizes

Arrays = Mapping[str, Any]


class Front(Protocol):
    """Operators that can be differentiated, and functions of arrays, in one framework.

    Edge arrays are in the order that the operator's own declaration gives them.
    """

    def counts(self, graph: Any) -> Sizes:
        """Return the sizes of a graph by name."""
        ...

    def forward(self, d: Derivatives, graph: Any, options: Options, inputs: Arrays) -> Any:
        """Return the first output of an operator; inputs that are not given are None."""
        ...

    def backward(
        self,
        d: Derivatives,
        graph: Any,
        options: Options,
        inputs: Arrays,
        gradient: Any,
        wanted: Sequence[str],
    ) -> dict[str, Any]:
        """Return the gradients of the `wanted` inputs, by the input's name.

        `gradient` is that of the first output; what is kept of `inputs` is there, of the others
        only the shape and dtype are looked at.
        """
        ...

    def vjp(self, function: Callable[..., Any], *arrays: Any) -> tuple[Any, Callable[..., Any]]:
        """Return ``function(*arrays)``, and the function from its gradients to theirs, a tuple."""
        ...

    def by_position(self, graph: Any, array: Any) -> Any:
        """Return an edge array that is by edge id in CSC order."""
        ...

    def by_id(self, graph: Any, array: Any) -> Any:
        """Return an edge array that is in CSC order by edge id."""
        ...

    def zeros(self, shape: Sequence[int], like: Any) -> Any:
        """Return zeros of the dtype and device of `like`."""
        ...

    def ones(self, shape: Sequence[int], like: Any) -> Any:
        """Return ones of the dtype and device of `like`."""
        ...

    def cast(self, array: Any, like: Any) -> Any:
        """Return an array in the dtype of `like`."""
        ...

    def accurate(self, array: Any) -> Any:
        """Return an array in the dtype that sums of it are kept in."""
        ...

    def where(self, condition: Any, yes: Any, no: Any) -> Any:
        """Return `yes` where the condition holds, `no` elsewhere."""
        ...

    def exp(self, array: Any) -> Any:
        """Return the exponential."""
        ...

    def tanh(self, array: Any) -> Any:
        """Return the hyperbolic tangent."""
        ...

    def concatenate(self, arrays: Sequence[Any], axis: int) -> Any:
        """Return arrays one after the other along an axis."""
        ...
