"""Maintenance jobs: recovery, retention, storage and dead letters, one process at a time for each."""
