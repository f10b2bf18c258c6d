"""Read-only queries: lists, details, conversations and history."""
