"""Bodies and answers of agents, teams and providers."""
