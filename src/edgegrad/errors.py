"""What edgegrad raises, and the one form of its messages."""

from __future__ import annotations

__all__ = ["ArgumentError", "BackendError", "DerivativeError"]


class ArgumentError(Exception):
    """An argument of a call is not what it should be; always also a built-in error.

    `TypeError` for a wrong kind or dtype, `ValueError` for a wrong value, shape, layout or device,
    `IndexError` (and `ValueError`) for an id out of range.
    """


class ArgumentTypeError(ArgumentError, TypeError):
    """An argument of the wrong kind or dtype."""


class ArgumentValueError(ArgumentError, ValueError):
    """An argument of the wrong value, shape, layout or device."""


class ArgumentIndexError(ArgumentError, IndexError, ValueError):
    """An id out of range."""


class BackendError(RuntimeError):
    """CuPy, a driver or an architecture is missing; the message has the command that mends it."""


class DerivativeError(NotImplementedError):
    """A derivative that does not exist was asked for; it is never taken for zero."""


def wrong_type(where: str, argument: str, has: str, expected: str) -> ArgumentError:
    """Build the error for an argument of the wrong kind or dtype."""
    return ArgumentTypeError(f"{where}: `{argument}` has {has}, expected {expected}")


def wrong_value(where: str, argument: str, has: str, expected: str) -> ArgumentError:
    """Build the error for an argument of the wrong value, shape, layout or device."""
    return ArgumentValueError(f"{where}: `{argument}` has {has}, expected {expected}")


def wrong_index(where: str, argument: str, has: str, expected: str) -> ArgumentError:
    """Build the error for an id out of range."""
    return ArgumentIndexError(f"{where}: `{argument}` has {has}, expected {expected}")


def wrong_option(where: str, argument: str, value: object, expected: str) -> ArgumentError:
    """Build the error for an option that is not one of its values."""
    return ArgumentValueError(f"{where}: `{argument}` is {value!r}, expected {expected}")


def flag(where: str, argument: str, value: object) -> bool:
    """Return an option that is on or off; anything but a bool (or 0 and 1) is an error."""
    if value is True or value is False:
        return value
    if isinstance(value, int) and value in (0, 1):
        return bool(value)
    raise wrong_option(where, argument, type(value).__name__, "True or False")
