"""An agent's directory: the templates written to it, and the memory and skills read from it."""
