"""The API: REST, live events and outside workers, over one store."""
