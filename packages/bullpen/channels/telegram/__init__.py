"""Telegram, by long polling or a webhook."""
