"""Cleaning: from a stored document to its output (metaharvest.model.outputs), one shape over all formats.

The stored document is never changed. A value that no rule recognises stays as it was given.
"""
