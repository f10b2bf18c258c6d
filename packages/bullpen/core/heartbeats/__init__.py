"""Heartbeats: agents that look after their work without being asked."""
