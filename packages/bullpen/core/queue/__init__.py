"""The way in: messages, lanes and claims. One verb a file."""
