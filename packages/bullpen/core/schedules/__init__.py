"""Schedules: messages that are enqueued at a time or again and again, and their runs."""
