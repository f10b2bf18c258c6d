"""Messages, lanes and claims."""
