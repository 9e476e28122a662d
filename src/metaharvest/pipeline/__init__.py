"""The ingestion pipeline: stages over the change feed, from a record to a paper that can be found.

| stage | from | to |
|---|---|---|
| cleaning | the stored document | its output: one shape over all formats |
| full-text | the output | files of its full text |
| extraction | a file | text, language, references |
| duplicates | outputs | works: the outputs that are the same, and what is related |
| index | all of it | the search index |

Each stage has a module or a folder. It is a set of pure functions, and a `Stage` that calls them.
"""
