"""From a response in the outbox to its parts on the platform."""
