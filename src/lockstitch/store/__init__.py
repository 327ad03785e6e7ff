"""Where conversations are kept: SQLite, PostgreSQL or memory, behind one contract."""
