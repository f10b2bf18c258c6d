"""Answers as text of a platform: markdown parsed once, split on the tree, rendered per platform."""
