"""Read models: what the tables say, as frozen values, for the command line, the console, the API and reports.

Every function takes a session, changes nothing, and raises MetaharvestError with a sentence for unknown names. A value
has the same name in all read models: `site`, `site_id`, `run_id`, `document_id`, `docid`, `url`.

A list that may be long takes `limit`, and `after` with the last row of the page before. So rows that are added
meanwhile shift no page.
"""
