"""Heartbeats: scheduled wake-ups of agents."""
