"""From an agent's output to answers, handoffs, room posts and files."""
