"""bullpen setup: a few questions, each answer proved before it is kept."""
