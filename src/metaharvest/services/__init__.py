"""The use cases: the actions of people and programs on an installation. They return values and never print.

    harvester.py       the installation: settings, clock, database, targets; runs, dry runs and checks
    sites.py           sites are registered, changed, switched on and off, removed; deletions are confirmed
    schedule_files.py  the schedule as a file: exported, imported, taken over from a Metacat Harvester
    runs.py            a run with all that belongs to it: its result, its exit code, the metrics, the monitor
    requests.py        people ask for a harvest, stop a run or a site, leave a site out; the times of the daemon's runs
    registrations.py   people outside ask for the harvest of a site; a steward decides
    source_preview.py  a source before its registration
    my_site.py         the changes that a contact of a site may make
    documents.py       documents are copied, transferred, withdrawn
    reports.py         reports are read, sent again, dropped, delivered; letters about the problems of a rule
    targets.py         the holdings of targets, and checks of targets
    check_report.py    the report about a check of lists, documents and folders
    rehearsals.py, trials.py  rehearsals of registered sites, and for strangers
    list_making.py     a harvest list, made in a form
    source_repositories.py  a person's requests to a source repository; the registration of several
    pipeline.py, works.py, search.py  the pipeline, the works that it finds, its search index
    change_hooks.py    the change feed for other programs
    jobs.py, job_kinds.py, worker_loop.py  the jobs of workers: lists for people, their kinds, their life
    accounts.py        users, their sessions and links, keys of the API
    public_flags.py    the documents of sites that are not public are withheld
    export.py          sites, failing documents, problems, runs and deliveries in one workbook; dataset files
    tables.py, json_documents.py  tables as CSV, and documents of JSON
    installation.py    the settings file, the database, dates, addresses of persons, the health of all
    exit_codes.py      the exit codes of all commands

Each function takes a `Harvester` and typed values, and raises the errors of errors.py. The command line and the demo
call these, and read with queries/.
"""
