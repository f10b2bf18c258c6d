"""Wake-ups across processes: hints that there is work."""
