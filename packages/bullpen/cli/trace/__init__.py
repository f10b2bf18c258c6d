"""bullpen trace: a conversation as a tree, with all that was done for it."""
