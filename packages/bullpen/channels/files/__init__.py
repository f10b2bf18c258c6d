"""Files of people, fetched from the platform, and files of agents, offered to it."""
