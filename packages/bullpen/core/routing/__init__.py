"""Who a text is for: tags, prefixes and names. Nothing here reads or writes anything."""
