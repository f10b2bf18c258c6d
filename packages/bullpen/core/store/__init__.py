"""The database: SQLite or PostgreSQL behind one Store."""
