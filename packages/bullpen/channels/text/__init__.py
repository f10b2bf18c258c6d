"""Text of answers: markdown as one tree, its splitting, and its form on each platform."""
