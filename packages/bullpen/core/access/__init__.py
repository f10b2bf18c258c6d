"""Access to the API: the owner's token, API keys, browser logins and the audit log."""
