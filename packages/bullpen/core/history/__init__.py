"""What was said, looked through."""
