"""What a site does to publish: makes a harvest list from a folder of documents, changes it, compares two of them."""
