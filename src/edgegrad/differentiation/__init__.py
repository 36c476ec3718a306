"""How operators are differentiated, for every framework alike.

`registry` has one registration per differentiable operator; `shapes` says what a call writes;
`second` gives second derivatives, written as calls of operators, or says that there are none. A
front end brings a `Front`: those operators, and a few functions of arrays, in its framework.
"""

from edgegrad.differentiation.front import Front
from edgegrad.differentiation.registry import DIFFERENTIABLE, Derivatives, derivatives
from edgegrad.differentiation.second import Gradients, second_derivatives
from edgegrad.differentiation.shapes import Result, backward_results, forward_results, sizes_of

__all__ = [
    "DIFFERENTIABLE",
    "Derivatives",
    "Front",
    "Gradients",
    "Result",
    "backward_results",
    "derivatives",
    "forward_results",
    "second_derivatives",
    "sizes_of",
]
