"""Backups: made while Bullpen runs, verified, and restored to a new home."""
