"""The demonstration history: a simulated month of work, written in bulk."""
