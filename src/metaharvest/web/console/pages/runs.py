"""Runs: the list, a run with its sites, and what changed between two runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy.orm import Session
from starlette.responses import Response

from metaharvest.errors import MetaharvestError
from metaharvest.model import OutcomeKind, RunStatus, SiteRunStatus
from metaharvest.model.values import frozen
from metaharvest.queries.changes import changed_sites
from metaharvest.queries.runs import RunRecord, SiteRunRecord, run_record, run_summaries
from metaharvest.reports.phrasing import GRAVITY, PHASES, phases, run_story, statuses_of_sites
from metaharvest.services import tables
from metaharvest.text import whole_number
from metaharvest.web.console.pages.jobs import live_values
from metaharvest.web.console.visit import NotFound, Visit, known

_RUNS_SHOWN = 50
_SITES_SHOWN = 100
_CHANGES_SHOWN = 10
_DOCUMENTS_SHOWN = 20


def show_all(visit: Visit) -> Response:
    """The runs, the newest first."""
    with visit.harvester.reading() as session:
        found = run_summaries(session, _RUNS_SHOWN + 1, visit.after)
    shown = found[:_RUNS_SHOWN]
    next_page = visit.link("/console/runs", after=shown[-1].run_id) if len(found) > _RUNS_SHOWN else ""
    return visit.render("runs.html", runs=shown, is_first=visit.after is None, next_page=next_page)


def send_all(visit: Visit) -> Response:
    """All runs as a table."""
    return visit.send_table(tables.runs_table(visit.harvester), "runs.csv")


@frozen
class Share:
    """The part of a time: `begin` and `percent` of the whole bar."""

    label: str
    seconds: float
    begin: float
    percent: float


def shares(seconds: Mapping[str, float]) -> list[Share]:
    """The parts of the time, in order; none if there was no time."""
    whole, begin, found = sum(seconds.values()), 0.0, []
    for label, each in seconds.items():
        if whole:
            found.append(Share(label, each, round(begin, 2), round(100 * each / whole, 2)))
            begin += 100 * each / whole
    return found


_LABELS = {**PHASES, "server_seconds": "servers of the sites"}


def time_of(sites: Sequence[SiteRunRecord]) -> list[Share]:
    """Where the time of the documents of these sites went."""
    return shares({label: sum(getattr(each, column) or 0.0 for each in sites) for column, label in _LABELS.items()})


def _time_in_words(site: SiteRunRecord) -> str:
    return phases({column: getattr(site, column) for column in PHASES}, "its server")


ORDERS: Mapping[str, Callable[[SiteRunRecord], Any]] = {
    "state": lambda site: (GRAVITY.index(SiteRunStatus(site.status)), -site.failing, site.site.lower()),
    "site": lambda site: site.site.lower(),
    "listed": lambda site: (-site.listed, site.site.lower()),
    "failing": lambda site: (-site.failing, site.site.lower()),
    "took": lambda site: (-(site.took_seconds or 0.0), site.site.lower()),
}


def show(visit: Visit) -> Response:
    """A run with its sites."""
    run_id = _run_id(visit)
    order = visit.query.get("order", "state")
    order = order if order in ORDERS else "state"
    start = whole_number(visit.query.get("start", "")) or 0
    with visit.harvester.reading() as session:
        run = _run(session, run_id)
        earlier = run_summaries(session, 1, run_id)
    sites = sorted(run.sites, key=ORDERS[order])[start : start + _SITES_SHOWN]
    more = start + _SITES_SHOWN < len(run.sites)
    return visit.render(
        "run.html",
        run=run,
        story=_story(run),
        totals=run.totals,
        before=earlier[0] if earlier else None,
        sites=sites,
        order=order,
        is_first=not start,
        next_page=visit.link("/console/runs", run_id, order=order, start=start + _SITES_SHOWN) if more else "",
        time=time_of(run.sites),
        times={site.site_run_id: _time_in_words(site) for site in sites},
        **(live_values(visit) if run.status == RunStatus.RUNNING else {"live": None}),
    )


def send_sites(visit: Visit) -> Response:
    """The sites of a run as a table."""
    run_id = _run_id(visit)
    return visit.send_table(tables.sites_table(visit.harvester, run_id), f"run-{run_id}-sites.csv")


def send_documents(visit: Visit) -> Response:
    """The documents of a site in a run as a table."""
    number = _number(visit.query.get("site_run", ""))
    return visit.send_table(tables.documents_table(visit.harvester, number), f"site-run-{number}.csv")


def show_changes(visit: Visit) -> Response:
    """What changed from another run, or the run before, to this one."""
    run_id = _run_id(visit)
    start = whole_number(visit.query.get("start", "")) or 0
    found, site_ids = None, list[int]()
    with visit.harvester.reading() as session:
        _run(session, run_id)
        first, second = _pair(visit, session, run_id)
        if first is not None:
            with visit.mistakes(MetaharvestError):
                found, site_ids = changed_sites(session, first, second, _CHANGES_SHOWN, start)
    other = second if first == run_id else first
    more = start + _CHANGES_SHOWN < len(site_ids)
    return visit.render(
        "changes.html",
        run_id=run_id,
        other=other,
        found=found,
        number=len(site_ids),
        most=_DOCUMENTS_SHOWN,
        is_first=not start,
        next_page=visit.link("/console/runs", run_id, "changes", other=other, start=start + _CHANGES_SHOWN)
        if more
        else "",
    )


def send_changes(visit: Visit) -> Response:
    """The same as a table, with all sites."""
    run_id = _run_id(visit)
    with visit.harvester.reading() as session:
        first, second = _pair(visit, session, run_id)
    if first is None:
        return visit.not_found("There is no run before this one.")
    return visit.send_table(tables.changes_table(visit.harvester, first, second), f"changes-{first}-{second}.csv")


def _pair(visit: Visit, session: Session, run_id: int) -> tuple[int | None, int]:
    """The two runs to compare, the earlier first; the first is None if there is none."""
    other = visit.query.get("other", "").strip()
    if not other:
        before = run_summaries(session, 1, run_id)
        return (before[0].run_id if before else None), run_id
    number = _number(other)
    return min(number, run_id), max(number, run_id)


def _story(run: RunRecord) -> str:
    """The run in the words of the subject of its mail."""
    counts = {kind: sum(site.number(kind) for site in run.sites) for kind in OutcomeKind}
    return run_story(statuses_of_sites((site.site_id, site.status) for site in run.sites), counts)


def _run(session: Session, run_id: int) -> RunRecord:
    with known(f"There is no run {run_id}."):
        return run_record(session, run_id)


def _run_id(visit: Visit) -> int:
    return _number(visit.path["run"])


def _number(text: str) -> int:
    number = whole_number(text)
    if number is None:
        raise NotFound(f"There is no run '{text}'.")
    return number
