"""Copies of documents: from one target into another, and from the catalogue into dataset files."""
