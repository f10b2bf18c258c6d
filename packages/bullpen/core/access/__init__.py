"""Who may do what over the API: the owner's token, keys, browsers, and the log of their deeds."""
