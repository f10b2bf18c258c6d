"""`bullpen doctor`: checks of an installation, and fixes for what they find."""
