"""The state of channels in the store: chats, senders, pairing and health."""
