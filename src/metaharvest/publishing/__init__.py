"""Publication at a site: makes a harvest list from a folder of documents, changes it, and compares two lists."""
