"""The scheduler process: schedules, heartbeats and maintenance jobs."""
