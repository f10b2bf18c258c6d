"""Claims messages, runs agents and finishes."""
