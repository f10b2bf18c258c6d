"""bullpen events: what happened, and what happens."""
