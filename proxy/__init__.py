"""hushql: a PostgreSQL proxy that answers aggregate queries with differential privacy."""

__version__ = "0.1.0"
