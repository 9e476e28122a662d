"""Measures how fast metaharvest is, beside what the same files cost curl, xmllint and sqlite3. `make bench` runs it."""
