"""Child processes: forked quickly, watched, and ended with all their descendants."""
