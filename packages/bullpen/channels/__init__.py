"""Channels: one client for each platform, and the process that runs it."""
