"""An agent's own directory: what is put there, and what is read from it."""
