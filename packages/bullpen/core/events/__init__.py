"""Events: appended in the transaction of the change, and followed by readers."""
