"""Bullpen: a company of AI agents on a durable SQL queue."""

__version__ = "0.1.0"
