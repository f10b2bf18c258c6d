"""What every process shares: the store, the queue, the outbox and events."""
