"""Files from and for people, in one directory: kept, listed, opened and removed."""
