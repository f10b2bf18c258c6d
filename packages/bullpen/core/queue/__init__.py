"""The queue: messages, lanes and claims."""
