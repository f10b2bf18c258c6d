"""The process that does what is due: schedules, heartbeats and the upkeep of the store."""
