"""What answers a message: one file each."""
