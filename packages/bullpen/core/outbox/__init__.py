"""Responses, and their delivery to people."""
