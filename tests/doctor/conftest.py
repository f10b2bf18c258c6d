"""Homes for the doctor, as for the command line."""

from tests.cli.conftest import bullpen, empty, on_both

__all__ = ["bullpen", "empty", "on_both"]
