"""The use cases: the actions of people and programs on an installation. They return values and never print.

    harvester.py       the installation: settings, clock, database, targets; runs, dry runs and checks
    sites.py           sites are registered, changed, switched on and off, removed; deletions are confirmed
    schedule_files.py  the schedule as a file: exported, imported, taken over from a Metacat Harvester
    runs.py            a run with all that belongs to it: its result, its exit code, the metrics, the monitor
    requests.py        people ask for a harvest, stop a run or a site, leave a site out; the times of the daemon's runs
    documents.py       documents are copied, transferred, withdrawn
    reports.py         reports are read, sent again, dropped, delivered
    targets.py         the holdings of targets, and checks of targets
    check_report.py    the report about a check of lists, documents and folders
    source_repositories.py  a person's requests to a source repository; the registration of several
    export.py          sites, failing documents, problems, runs and deliveries in one workbook
    installation.py    the settings file, the database, dates, addresses of persons, the health of all

Each function takes a `Harvester` and typed values, and raises the errors of errors.py. The command line and the demo
call these, and read with queries/.
"""
