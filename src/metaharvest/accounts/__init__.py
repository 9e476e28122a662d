"""The accounts of the console: users, sessions, links, keys of the API; and the audit of what people decide."""
