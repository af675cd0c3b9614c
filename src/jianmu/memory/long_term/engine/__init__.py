"""The project's own memory engine: word index and vectors, fused; what SQLite and PostgreSQL share."""
