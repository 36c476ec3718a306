"""Fixtures of the tests that hold in every framework."""

from frameworks import framework

__all__ = ["framework"]
