"""From what an agent said to what becomes of it: answers, handoffs, room posts and files."""
