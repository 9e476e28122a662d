"""The registered sites: their rows, when they are due, and which are overdue."""
