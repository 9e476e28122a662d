"""The operations that read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, time, timedelta
from typing import TypeVar

from sqlalchemy.orm import Session

from metaharvest.model.jobs import OPEN, JobState
from metaharvest.queries import decisions as audit
from metaharvest.queries import jobs as stored_jobs
from metaharvest.queries.documents import DocumentCursor, DocumentFilter, document_page
from metaharvest.queries.figures import Per
from metaharvest.queries.figures import figures as counted_figures
from metaharvest.queries.history import document_history
from metaharvest.queries.json_keys import as_mapping
from metaharvest.queries.log import LogFilter, log_entries, of_one_run
from metaharvest.queries.outbox import ReportFilter, newest_reports, report_record
from metaharvest.queries.problems import open_problems
from metaharvest.queries.public_sites import numbers_of
from metaharvest.queries.requests import RequestFilter
from metaharvest.queries.requests import requests as stored_requests
from metaharvest.queries.runs import run_record, run_summaries
from metaharvest.queries.sites import SiteSelection, registered_site, registered_sites_of, site_page
from metaharvest.services import jobs as worker_jobs
from metaharvest.services import registrations as registered
from metaharvest.services import requests as asked
from metaharvest.services import sites as registry
from metaharvest.services.json_documents import registration_document, run_document, run_row, site_document
from metaharvest.web.api.call import Answer, Call
from metaharvest.web.api.cursors import cursor_of, number_of, values_of
from metaharvest.web.api.problems import Problem, known

_Row = TypeVar("_Row")


def me(call: Call) -> Answer:
    """The key itself."""
    key = call.key
    assert key is not None  # the least role is not PUBLIC
    return Answer({"key": key.name, "role": key.role.word, "made_at": key.created_at, "expires_at": key.expires_at})


def sites(call: Call) -> Answer:
    """The sites of the selection, by name."""
    query, today = call.query, call.harvester.today()
    chosen = SiteSelection(
        state=query.state, kind=query.kind, group=query.group, overdue=query.overdue, failing=query.failing,
        text=query.text or "",
    )  # fmt: skip
    after = values_of(query.cursor, str)[0] if query.cursor is not None else None
    with call.harvester.reading() as session:
        page = site_page(session, chosen, today, limit=query.limit, after=after)
        found = registered_sites_of(session, [each.site_id for each in page.sites], today)
    next_cursor = cursor_of(page.next) if page.next is not None else None
    return Answer([site_document(each) for each in found], next_cursor)


def site(call: Call) -> Answer:
    """A site, with the ETag of its registered values."""
    name = call.path["site"]
    with call.harvester.reading() as session:
        require_site(session, name)
    return site_answer(call, name)


def site_answer(call: Call, name: str) -> Answer:
    """The site of this name, with its ETag. Raises ScheduleError."""
    # Read before the values: if the site is changed in between, an edit with this ETag is refused.
    etag = etag_of(registry.find(call.harvester, name))
    with call.harvester.reading() as session:
        found = registered_site(session, name, call.harvester.today())
    return Answer(site_document(found), headers={"ETag": etag})


def runs(call: Call) -> Answer:
    """The runs, the newest first."""
    limit = call.query.limit
    with call.harvester.reading() as session:
        found = run_summaries(session, limit + 1, number_of(call.query.cursor))
    return _page(found, limit, "run_id", run_row)


def run(call: Call) -> Answer:
    """A run, with its sites."""
    number = call.number("run", "run")
    with call.harvester.reading() as session:
        with known(f"There is no run {number}."):
            found = run_record(session, number)
        return Answer(run_document(session, found))


def log(call: Call) -> Answer:
    """The rows of the log: the newest page first, the rows of each page in the order in which they were written."""
    query = call.query
    wanted = LogFilter(
        run_id=query.run, site=query.site, document=query.document, rule=query.rule, level=query.level,
        since=query.since, until=query.until, limit=query.limit,
    )  # fmt: skip
    if query.since and query.until and query.since > query.until:
        raise Problem(422, f"since {query.since} is after until {query.until}: no day is in between.")
    with call.harvester.reading() as session:
        if query.cursor is not None:
            after, run_id, site_run_id = values_of(query.cursor, int, int, int)
            wanted = replace(wanted, after=after, run_id=run_id, site_run_id=site_run_id)
            if site_run_id is not None:
                wanted = replace(wanted, run_id=None, site=None)
        else:
            wanted = of_one_run(session, wanted)
        rows = list(log_entries(session, wanted)) if not _is_of_nothing(wanted) else []
    with_number = [row for row in rows if row.log_id is not None]
    is_full = len(with_number) >= query.limit
    next_cursor = cursor_of(with_number[0].log_id, wanted.run_id, wanted.site_run_id) if is_full else None
    return Answer(rows, next_cursor)


def _is_of_nothing(wanted: LogFilter) -> bool:
    """True if it means the newest run of a site, or of all, and there is none."""
    return wanted.run_id is None and wanted.site_run_id is None and not wanted.is_over_runs


def documents(call: Call) -> Answer:
    """The documents of the selection, by site."""
    query = call.query
    if query.nights is not None and not query.failing:
        raise Problem(422, "nights needs failing=true: it says for how many nights a document has failed.")
    wanted = DocumentFilter(query.site, query.failing, query.nights, query.rule, query.outcome, query.missing)
    after = None
    if query.cursor is not None:
        values = values_of(query.cursor, str, int, str, int)
        if None in values:
            raise Problem(400, "The cursor belongs to another list. Leave it out to begin with the first page.")
        after = DocumentCursor(*values)
    with call.harvester.reading() as session:
        shown, last = document_page(session, wanted, call.harvester.today(), query.limit, after)
    place = cursor_of(last.site, last.site_id, last.document_id, last.revision) if last else None
    return Answer(shown, place)


def document(call: Call) -> Answer:
    """The history of a document."""
    with call.harvester.reading() as session, known():
        return Answer(document_history(session, call.path["document"], call.harvester.today()))


def problems(call: Call) -> Answer:
    """The open problems by rule."""
    with call.harvester.reading() as session:
        return Answer(open_problems(session, call.query.site))


def figures(call: Call) -> Answer:
    """The totals of a period."""
    query = call.query
    last = query.until or call.harvester.today()
    first = query.since or last.replace(month=1, day=1)
    if first > last:
        raise Problem(422, f"since {first} is after until {last}.")
    with call.harvester.reading() as session:
        return Answer(counted_figures(session, first, last, Per(query.per) if query.per else None))


def outbox(call: Call) -> Answer:
    """The mails, the newest first."""
    query = call.query
    state = query.state if query.state != "undelivered" else None
    which = ReportFilter(query.state == "undelivered", query.site, query.kind, query.recipient, state, query.document)
    with call.harvester.reading() as session:
        found = newest_reports(session, query.limit + 1, which, number_of(query.cursor))
    return _page(found, query.limit, "report_id")


def mail(call: Call) -> Answer:
    """A mail without its content."""
    number = call.number("report", "mail")
    with call.harvester.reading() as session, known(f"There is no mail with the number {number}."):
        return Answer(report_record(session, number))


def requests(call: Call) -> Answer:
    """The requests to the harvester, the newest first."""
    query = call.query
    states = (query.state,) if query.state else ()
    found = call.harvester.read(stored_requests, RequestFilter(states=states), query.limit + 1, number_of(query.cursor))
    return _page(found, query.limit, "request_id")


def request(call: Call) -> Answer:
    """A request, and what it waits for."""
    return Answer(asked_document(call, find_request(call)))


def find_request(call: Call) -> asked.Asked:
    """The request of the path. Raises Problem."""
    number = call.number("request", "request")
    with known(f"There is no request {number}."):
        return asked.find(call.harvester, number)


def asked_document(call: Call, found: asked.Asked) -> dict[str, object]:
    """A request with its address, and what it waits for."""
    url = call.address(f"/requests/{found.request.request_id}")
    return {**as_mapping(found.request), "waits_for": found.waits_for, "url": url}


def jobs(call: Call) -> Answer:
    """The jobs of workers, the newest first."""
    query = call.query
    states = [query.state] if query.state else [JobState(each) for each in OPEN] if query.open else []
    wanted = stored_jobs.JobFilter(states, run_id=query.run)
    found = call.harvester.read(stored_jobs.jobs, wanted, query.limit + 1, number_of(query.cursor))
    return _page(found, query.limit, "job_id")


def job(call: Call) -> Answer:
    """A job, with the steps of its life."""
    number = call.number("job", "job")
    with known(f"There is no job {number}."):
        found, events = worker_jobs.shown(call.harvester, number)
    return Answer({**as_mapping(found), "events": [as_mapping(each) for each in events]})


def workers(call: Call) -> Answer:
    """The workers that are not forgotten yet, also silent ones, by name."""
    return Answer(call.harvester.read(stored_jobs.workers))


def registrations(call: Call) -> Answer:
    """The registrations that wait, the oldest first."""
    query = call.query
    after = number_of(query.cursor) or 0
    found = registered.waiting(call.harvester, everything=query.everything, after=after, limit=query.limit + 1)
    return _page(found, query.limit, "registration_id", registration_document)


def registration(call: Call) -> Answer:
    """A registration."""
    number = call.number("registration", "registration")
    with known(f"There is no registration {number}."):
        return Answer(registration_document(registered.find(call.harvester, number)))


def decisions(call: Call) -> Answer:
    """The decisions of people, the newest first."""
    query, zone = call.query, call.harvester.settings.harvester.zone
    with call.harvester.reading() as session:
        wanted = audit.DecisionFilter(
            site_id=audit.number_of_site(session, query.site) if query.site else None,
            actor=query.actor,
            action=query.action,
            since=datetime.combine(query.since, time(), zone) if query.since else None,
            until=datetime.combine(query.until + timedelta(days=1), time(), zone) if query.until else None,
        )
        found = list(audit.decisions(session, wanted, query.limit + 1, number_of(query.cursor)))
    return _page(found, query.limit, "decision_id")


def require_site(session: Session, name: str) -> int:
    """The number of a registered site. Raises Problem."""
    number = numbers_of(session, [name]).get(name)
    if number is None:
        raise Problem(404, "There is no site of this name.")
    return number


def etag_of(site: registry.AnySite) -> str:
    """The ETag of a site: it names the registered values, whatever the harvests of the site were."""
    values = {**registry.values_of(site), "next_harvest": None, "last_harvest": None}
    text = json.dumps([site.site_id, site.name, values], sort_keys=True, default=str)
    return f'"{hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]}"'


def _page(found: Sequence[_Row], limit: int, key: str, document: Callable[[_Row], object] | None = None) -> Answer:
    """A page of rows with numbers; `document` makes the JSON of a row. If one more row was found, a page follows."""
    rows = found[:limit]
    shown = rows if document is None else [document(each) for each in rows]
    return Answer(shown, cursor_of(getattr(rows[-1], key)) if len(found) > limit else None)
