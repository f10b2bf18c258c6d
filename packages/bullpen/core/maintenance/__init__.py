"""Maintenance jobs: recovery, retention, storage and dead letters, each run by one process."""
