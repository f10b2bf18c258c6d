"""The company at work: who does what just now, and what it has cost."""
