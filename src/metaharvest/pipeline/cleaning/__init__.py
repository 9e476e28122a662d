"""Cleaning: from a stored document to its output (metaharvest.model.outputs), one shape over all formats.

| module | what |
|---|---|
| cleaned | the module of a format by the root element: `clean` |
| dublin_core, datacite, eml, iso19139, mods, marcxml, ore | a table of each format: which path gives which values |
| draft | collects the values of a document, within bounds, and decides what depends on several of them |
| names, dates, languages, licences, types, identifiers | values of one kind, from a text: pure functions |
| organisations, asian_names | names of organisations, and names in Han characters and Hangul, for `names` |
| json | the output as JSON, and back |
| stage | reads documents, writes the table `output` |

The stored document is never changed. A value that no rule recognises stays as it was given.
"""
