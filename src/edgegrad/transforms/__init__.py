"""Functions of arrays turned into the functions of their derivatives, in any framework."""

from edgegrad.transforms.ascend import Ascent, ascend
from edgegrad.transforms.check import check_gradient
from edgegrad.transforms.gradient import gradient, hvp, jacobian, value_and_gradient
from edgegrad.transforms.namespace import array_namespace

__all__ = [
    "Ascent",
    "array_namespace",
    "ascend",
    "check_gradient",
    "gradient",
    "hvp",
    "jacobian",
    "value_and_gradient",
]
