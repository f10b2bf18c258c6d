"""Loops that keep the store in order, each run by one process at a time."""
