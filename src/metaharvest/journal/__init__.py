"""The single writer: it writes each event of a run as rows."""
