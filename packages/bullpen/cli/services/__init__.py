"""The services, started, seen and stopped."""
