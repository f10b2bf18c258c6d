"""Agents, teams, sessions and providers."""
