"""Facts: rows of the store as Arrow batches, for the job and for notebooks."""
