"""The code that all processes share: the store, the queue, the outbox and events."""
