"""The use cases: what people and programs do with an installation. They return values and never print.

    harvester.py       the installation: settings, clock, database, targets; runs, dry runs and checks
    sites.py           sites are registered, changed, switched on and off, removed; deletions are confirmed
    schedule_files.py  the schedule as a file: exported, imported, taken over from a Metacat Harvester
    runs.py            a run with all that belongs to it: how it ended, its exit code, the metrics, the monitor
    timetable.py       when the daemon runs
    documents.py       documents are copied, transferred, withdrawn
    reports.py         reports are read, sent again, given up, delivered
    targets.py         what targets hold, and whether they answer
    installation.py    the settings file, the database, dates, addresses of persons, the health of all

Each function takes a `Harvester` and typed values, and raises the errors of errors.py. The command line and the demo
call these, and read with queries/.
"""
