"""Slack, by Socket Mode or signed HTTP events."""
