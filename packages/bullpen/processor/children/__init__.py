"""Child processes: started small and fast, watched, and ended with everything below them."""
