"""One client per platform."""
