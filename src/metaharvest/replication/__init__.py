"""Copies of documents from one target into another."""
