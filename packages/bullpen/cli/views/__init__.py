"""Live views in the terminal: what happens, as it happens, from the store itself."""
