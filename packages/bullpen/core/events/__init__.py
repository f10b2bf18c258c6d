"""Events: appended in the transaction of what happened, and followed by readers."""
