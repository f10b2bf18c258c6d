"""Conversations: all that one message of a person's set off."""
