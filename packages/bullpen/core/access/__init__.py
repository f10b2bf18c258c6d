"""Access to the API: the owner's token, keys, browser logins and the audit log."""
