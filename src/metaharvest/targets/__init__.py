"""Targets: the stores of documents that the harvest keeps up to date."""
