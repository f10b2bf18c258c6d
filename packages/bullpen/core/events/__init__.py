"""The record of what happened, and how to follow it."""
