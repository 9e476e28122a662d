"""Duplicates: which outputs are the same, which are versions of each other, and what is related.

| module | what it does |
|---|---|
| titles.py | the parts of a title that matter: words, numbers, marks of a version, what it is about |
| facts.py | the facts of an output for the comparison |
| keys.py | the blocks of an output: only outputs with a block in common are compared |
| comparison.py | two outputs -> an answer (same, version, look, different), a score, a reason for people |
| clusters.py | pairs and decisions of people -> works |
| tables.py | the tables: blocks, pairs, works |
| stage.py | the stage: outputs -> tables |
| vectors.py | embeddings of titles, as an extra |
| related.py | the order of what is related to an output, with reasons |

The tables are a function of the outputs and of the decisions. The order of the documents has no influence.
"""
