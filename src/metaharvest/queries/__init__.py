"""Read models: what the tables say, as frozen values, for the command line, the console, the API and reports.

    runs.py            runs and site runs: columns, totals, findings
    trends.py          a site's last harvests, one after another; the sites that failed as a whole
    changes.py         what changed between two runs
    log.py             the log, row by row, with findings
    documents.py       how the listed documents stand, over all sites; what was found the last time
    history.py         what is known of one document; why it is, or is not, in the target
    document_search.py documents by docid, OAI identifier, title, URL, file name; documents of a rule
    figures.py         the figures of a period over all sites, of parts of it, of one site
    departures.py      documents that are gone; deletions that wait
    problems.py        the open problems by rule, over the nights, by document, by site
    outbox.py          reports and their deliveries; mail that does not leave
    decisions.py       the audit: the decisions of people
    requests.py        the requests of people to the harvester
    sites.py           the schedule, as people are shown it, with filters, orders and pages
    public_sites.py    the sites that are public, and how they stand
    site_totals.py     the totals of the harvests of each site over some days
    tonight.py         the newest run at a glance, and what waits for a person
    live.py            the run under way, and the next run
    jobs.py            the jobs of workers
    pipeline.py        the progress of the pipeline, and the documents that failed there
    works.py           the outputs that are the same
    records.py         findings as they are stored, docids; conditions that several modules share
    json_keys.py       the keys of JSON documents, where they differ from the names here

Every function takes a session, changes nothing, and raises MetaharvestError with a sentence for unknown names. A value
has the same name in all read models: `site`, `site_id`, `run_id`, `document_id`, `docid`, `url`.

A list that may be long takes `limit`, and `after` with the last row of the page before. So rows that are added
meanwhile shift no page.
"""
