"""Hints across processes that there is something to do."""
