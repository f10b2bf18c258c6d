"""HTTP: REST, live events and the portal."""
