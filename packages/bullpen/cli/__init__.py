"""The `bullpen` command."""
