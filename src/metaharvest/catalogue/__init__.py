"""The catalogue: the documents that the embedded target holds, and the feed of their changes."""
