"""Read models: what the tables say, as read-only rows, for the command line, the console, the API and reports.

    runs.py        runs and site runs: columns, totals, findings
    log.py         the log, row by row, with findings
    outbox.py      reports and their deliveries; mail that does not leave
    sites.py       the schedule, as people are shown it
    documents.py   what the embedded target holds
    records.py     rows as mappings of their columns

Every function takes a session, changes nothing, and raises MetaharvestError with a sentence for what is not there.
"""
