"""Everything that only reads: lists, details, conversations and history."""
