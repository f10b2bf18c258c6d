"""From a payload of the platform to a message in the queue."""
