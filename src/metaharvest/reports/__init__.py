"""Reports: from the journal to a rendered message; the room `mail` delivers it.

Everything in a report is read from the tables, never from memory: the tables say what the mail said.
"""
