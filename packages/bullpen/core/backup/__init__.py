"""Backups: a consistent copy of a home, checked, from which another home can be made."""
