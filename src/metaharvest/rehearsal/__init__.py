"""Rehearsals: what a harvest would say of documents, lists and sites, before it does anything."""
