"""Decides from a document's bytes if it may go into the target; explains faults to the person who can correct them.

A processing policy says how: a site may have documents filtered and normalised before the check, and has a level.
Without one, a document has to be EML: well-formed (`wellformed`), an EML root that agrees with the list (`identity`),
schema-valid (`against_schema`, explained by `explain`), EML-valid (`eml`), and the document that the list names
(`identity`). The first of these with an error decides: all of its findings are given, and the warnings of those before
it. `strict`: it is well-formed. `very-strict`: it obeys the rules of its own format: the rules of EML, or the schema
that `formats` knows for its root element. `loose`: what very-strict would refuse is a warning, unless it is not
well-formed.

That the document arrived whole, and is not an HTML page, is checked where it is fetched. `validator` makes the
checks; `worker` is what a worker process runs.
"""
