"""Schedules: what is to be said to whom and when, and what became of it."""
