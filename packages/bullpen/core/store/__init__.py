"""The database: SQLite or PostgreSQL, with the same promises."""
