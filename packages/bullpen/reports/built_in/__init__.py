"""Bullpen's own reports, one file each."""
