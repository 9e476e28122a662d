"""Duplicates: which outputs are the same, which are versions of each other, and what is related.

The tables are a function of the outputs and of the decisions. The order of the documents has no influence.
"""
