"""What every process shares: the store, the queue, the outbox, events and their words."""
