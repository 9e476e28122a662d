"""Read models: what the tables say, as read-only rows, for the command line, the console, the API and reports.

    runs.py            runs and site runs: columns, totals, findings
    trends.py          a site's last harvests, one after another; how many documents are failing
    changes.py         what changed between two runs
    log.py             the log, row by row, with findings
    documents.py       how the listed documents stand, over all sites (last_findings.py: what was found the last time)
    history.py         what is known of one document
    outbox.py          reports and their deliveries; mail that does not leave
    sites.py           the schedule, as people are shown it
    records.py         rows as mappings of their columns, and the one name of each

Every function takes a session, changes nothing, and raises MetaharvestError with a sentence for unknown names.
"""
