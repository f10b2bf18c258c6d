"""Reading the reports with DuckDB: needs neither Spark nor Java."""
