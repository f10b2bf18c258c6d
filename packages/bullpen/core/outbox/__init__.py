"""The outbox: responses and their delivery to people."""
