"""Which agent a text is for: tags, prefixes and names. Nothing here touches the store."""
