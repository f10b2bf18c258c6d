"""The way out: responses on their way to people."""
