"""Live views in the terminal."""
