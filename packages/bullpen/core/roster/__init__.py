"""Who works here: agents, their teams, sessions and providers."""
