"""Channels: one client per platform, and what a client plugs into."""
