"""Turn an agent's output into answers, handoffs, room posts and files."""
