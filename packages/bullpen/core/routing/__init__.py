"""Routing: find the recipients of a text by its tags, prefixes and names, without the store."""
