"""Opens and closes site runs, many sites at once: the number of statements does not grow with the sites.

Both happen in a transaction of the journal's. A site run closes as a whole or not at all: its totals, counted from the
log, the site's dates, and the report that is owed to its contacts.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING

from sqlalchemy import bindparam, delete, select, update
from sqlalchemy.orm import Session

from metaharvest.config.report_context import ReportContext
from metaharvest.database.models import Base, HarvestDetailLog, HarvestLog, HarvestRun, HarvestSiteRun
from metaharvest.database.rows import insert_numbered
from metaharvest.journal import totals
from metaharvest.journal.internal_errors import internal_error
from metaharvest.journal.log_rows import LogRow, Stamp, Whose, whose, write_log
from metaharvest.journal.outcomes import is_lost
from metaharvest.journal.totals import UNKNOWN_TIMES, Phases, keep_totals
from metaharvest.ledger.rows import forget_sites, numbers_of_entries
from metaharvest.model import (
    FINE_OUTCOMES,
    Finding,
    Level,
    ListVersion,
    OriginalColumns,
    OutcomeKind,
    Site,
    SiteRun,
    SiteRunKind,
    SiteRunStatus,
)
from metaharvest.model.values import frozen
from metaharvest.problems.follow import EndedSiteRun, update_problems
from metaharvest.sites.registry import read_sites_of, set_dates
from metaharvest.sites.rows import BrokenSite
from metaharvest.text import counted, shown_url

if TYPE_CHECKING:
    from metaharvest.mail.message import Report

log = logging.getLogger(__name__)

_SITE_RUNS = Base.metadata.tables[HarvestSiteRun.__tablename__]
_THIS = update(_SITE_RUNS).where(_SITE_RUNS.c.site_run_id == bindparam("this"))
_SWITCHED_OFF = "The site was switched off or removed before the end of its harvest."
_INTERRUPTED = (
    select(HarvestSiteRun)
    .where(
        HarvestSiteRun.site_schedule_id.in_(bindparam("sites", expanding=True)),
        HarvestSiteRun.status == SiteRunStatus.INTERRUPTED.value,
    )
    .order_by(HarvestSiteRun.site_run_id)
)


@frozen
class Opening:
    """A site run that is to begin, and the reason; `original_columns`: see SiteRun."""

    site: Site
    kind: SiteRunKind
    original_columns: Callable[[str], OriginalColumns]


@frozen
class Closing:
    """The end of a site run: with `status`, or, if that is None, as the totals say.

    `rows` are still to be logged; `listed` is None if no list could be read to its end; `unchanged` documents and
    `duplicates` have no rows of their own, but one together. `version` of the list is kept for the next harvest, now
    that its documents are safe. `is_complete`: the list named everything, not only the changes. `phases`: the time of
    each phase of its documents, if any were processed.
    """

    site_run: SiteRun
    rows: tuple[LogRow, ...] = ()
    listed: int | None = None
    unchanged: int = 0
    duplicates: int = 0
    version: ListVersion | None = None
    is_complete: bool = True
    status: SiteRunStatus | None = None
    reason: str | None = None
    phases: Phases | None = None


def open_all(session: Session, openings: Sequence[Opening], stamp: Stamp) -> list[SiteRun]:
    """Open the site runs, or resume those that a dead run left."""
    # A rehearsal is not resumed: no row has its number.
    left = {
        row.site_schedule_id: row
        for row in session.scalars(_INTERRUPTED, {"sites": [opening.site.site_id for opening in openings]})
    }
    forget_rehearsed(session, [opening.site for opening in openings])
    new = [opening for opening in openings if opening.site.site_id not in left]
    numbers = {}
    if left:
        of_runs = HarvestRun.run_id.in_([row.run_id for row in left.values()])
        days_before = set(session.scalars(select(HarvestRun.harvest_date).where(of_runs)))
        for opening in openings:
            if opening.site.site_id in left:
                numbers[opening.site.site_id] = _take_up(session, left[opening.site.site_id], opening, stamp)
        taken_up = _SITE_RUNS.c.site_run_id.in_(numbers.values())
        keep_totals(session, days_before, select(_SITE_RUNS.c.site_schedule_id).where(taken_up))
    if new:
        rows = [_new_columns(opening) for opening in new]
        same = {"run_id": stamp.run_id, "status": SiteRunStatus.RUNNING.value, "started_at": stamp.now}
        ids = insert_numbered(session.connection(), _SITE_RUNS, rows, {**same, **totals.Totals({}, 0).columns(0)})
        numbers |= {opening.site.site_id: key for key, opening in zip(ids, new, strict=True)}
    known = _known_lists(session, openings)
    site_runs = []
    for each in openings:
        site_id = each.site.site_id
        known_list, documents = known.get(site_id, (None, 0))
        columns, is_resumed = each.original_columns, site_id in left
        site_runs.append(SiteRun(numbers[site_id], each.site, each.kind, columns, is_resumed, known_list, documents))
    return site_runs


def forget_rehearsed(session: Session, sites: Iterable[Site]) -> None:
    """Delete the notes of a rehearsal about these sites from the ledger, so that it changes nothing."""
    forget_sites(session, [site.site_id for site in sites if site.is_rehearsed])


def fail(session: Session, site: Site | BrokenSite, kind: SiteRunKind, reason: str, row: LogRow, stamp: Stamp) -> None:
    """Write a site run that failed before it was open, with the reason."""
    failed = HarvestSiteRun(
        run_id=stamp.run_id,
        site_schedule_id=site.site_id,
        site_name=site.name,
        kind=kind.value,
        status=SiteRunStatus.FAILED.value,
        started_at=stamp.now,
        ended_at=stamp.now,
        failure_reason=reason,
        list_url=shown_url(site.list_url),
    )
    session.add(failed)
    session.flush()
    write_log(session, [(row, Whose(site.site_id, failed.site_run_id))], stamp)
    ended = EndedSiteRun(site.site_id, failed.site_run_id, kind, list_was_read=False, has_findings=bool(row.findings))
    update_problems(session, [ended], stamp.today)


def note_error(session: Session, site: Site | BrokenSite, kind: SiteRunKind, row: LogRow, stamp: Stamp) -> None:
    """Log an error of the harvester's own in the site's open site run; if there is none, in a failed one."""
    ours = (HarvestSiteRun.run_id == stamp.run_id, HarvestSiteRun.site_schedule_id == site.site_id)
    is_open = HarvestSiteRun.status == SiteRunStatus.RUNNING.value
    site_run_id = session.scalar(select(HarvestSiteRun.site_run_id).where(*ours, is_open))
    if site_run_id is None:
        fail(session, site, kind, row.message, row, stamp)
    else:
        write_log(session, [(row, Whose(site.site_id, site_run_id))], stamp)


def _new_columns(opening: Opening) -> dict[str, object]:
    return {
        "site_schedule_id": opening.site.registered_id,
        "site_name": opening.site.name,
        "kind": opening.kind.value,
        "rehearsal": opening.site.is_rehearsed,
        "list_url": shown_url(opening.site.list_url),
    }


def _take_up(session: Session, left: HarvestSiteRun, opening: Opening, stamp: Stamp) -> int:
    left.run_id, left.kind, left.ended_at = stamp.run_id, opening.kind.value, None
    left.status, left.failure_reason = SiteRunStatus.RUNNING.value, None
    left.site_name, left.list_url = opening.site.name, shown_url(opening.site.list_url)
    # Its log rows come along, so that every query of a run's log finds them.
    ours = HarvestLog.site_run_id == left.site_run_id
    of_other_run = (ours, HarvestLog.run_id != stamp.run_id)
    session.execute(update(HarvestLog).where(*of_other_run).values(run_id=stamp.run_id))
    # This run processes the documents that were put off, or gives the reason again.
    put_off = (ours, HarvestLog.harvest_operation_code == "DocDeferred")
    which = select(HarvestLog.harvest_log_id).where(*put_off)
    session.execute(delete(HarvestDetailLog).where(HarvestDetailLog.harvest_log_id.in_(which)))
    session.execute(delete(HarvestLog).where(*put_off))
    return left.site_run_id


def _known_lists(session: Session, openings: Sequence[Opening]) -> dict[int, tuple[ListVersion, int]]:
    """By site, the version of the list that the ledger mirrors, and the number of documents in it."""
    listed = {opening.site.site_id: opening.site for opening in openings if opening.site.list_version}
    if not listed:
        return {}
    last, numbers = totals.last_listings(session, listed), numbers_of_entries(session, listed)
    known: dict[int, tuple[ListVersion, int]] = {}
    for site_id, site in listed.items():
        number, before = numbers.get(site_id, 0), last.get(site_id)
        if site.list_version and before and (before.listed, before.list_url) == (number, shown_url(site.list_url)):
            known[site_id] = (site.list_version, number)
    return known


def close_all(session: Session, closings: Sequence[Closing], stamp: Stamp, context: ReportContext) -> list[bool]:
    """Close the site runs; for each, True if its report was made."""
    rows_before = [(row, whose(closing.site_run)) for closing in closings for row in _rows_of(closing)]
    write_log(session, rows_before, stamp)
    uncounted = {
        closing.site_run.site_run_id: {
            OutcomeKind.UNCHANGED: closing.unchanged,
            OutcomeKind.DUPLICATE: closing.duplicates,
        }
        for closing in closings
    }
    counted = totals.count(session, uncounted)
    registered = read_sites_of(session, [closing.site_run.site.registered_id for closing in closings])
    ends = [_end(closing, counted[closing.site_run.site_run_id]) for closing in closings]
    real = [end for end in ends if not end.closing.site_run.site.is_rehearsed]
    harvested = [(end.closing.site_run.site, end.closing.version) for end in real if end.is_harvest]
    dates = set_dates(session, harvested, registered, stamp.today)
    update_problems(session, [_problems_of(end) for end in real], stamp.today)
    rows = [_closed_columns(end, dates, stamp) for end in ends]
    session.connection().execute(_THIS.values({name: bindparam(name) for name in rows[0] if name != "this"}), rows)
    its = {closing.site_run.site_run_id: whose(closing.site_run) for closing in closings}
    reported = _reported(session, its, registered, stamp, context)
    forget_rehearsed(session, [closing.site_run.site for closing in closings])
    return reported


def stop_left(session: Session, site_ids: Collection[int], stamp: Stamp, context: ReportContext) -> None:
    """Close the interrupted site runs of sites that were switched off or removed during their run."""
    its = (HarvestSiteRun.run_id == stamp.run_id, HarvestSiteRun.status == SiteRunStatus.INTERRUPTED.value)
    of_sites = select(HarvestSiteRun).where(*its, HarvestSiteRun.site_schedule_id.in_(site_ids))
    left = {row.site_run_id: row for row in session.scalars(of_sites)}
    registered = read_sites_of(session, [row.site_schedule_id for row in left.values()])
    for row in left.values():
        row.status, row.ended_at, row.failure_reason = SiteRunStatus.STOPPED.value, stamp.now, _SWITCHED_OFF
    owners = {site_run_id: Whose(row.site_schedule_id, site_run_id) for site_run_id, row in left.items()}
    write_log(session, [(LogRow("DocDeferred", _SWITCHED_OFF), owner) for owner in owners.values()], stamp)
    ended = [
        EndedSiteRun(row.site_schedule_id, site_run_id, SiteRunKind(row.kind), list_was_read=False, has_findings=True)
        for site_run_id, row in left.items()
        if row.site_schedule_id in registered
    ]
    update_problems(session, ended, stamp.today)
    _reported(session, owners, registered, stamp, context)


def _rows_of(closing: Closing) -> Iterator[LogRow]:
    """The rows about documents that have no rows of their own, and the other rows of a closing."""
    if closing.unchanged:
        documents = counted(closing.unchanged, "document is", "documents are")
        yield LogRow("MetacatHasDoc", f"{documents} unchanged.")
    if closing.duplicates:
        rule, what = "list.duplicate", "a document that the list has named before."
        remedy = "Name each document once, and give a newer document a higher revision."
        if closing.site_run.site.options.oai is not None:
            rule, what = "oai.duplicates", "a record that the list has named before; its newest version counts."
            remedy = "No action is needed, unless the repository names records twice that it has once."
        message = f"{counted(closing.duplicates, 'more entry names', 'more entries name')} {what}"
        yield LogRow("DocDuplicate", message, (Finding(rule, message, remedy, Level.WARNING),))
    yield from closing.rows


@frozen
class _End:
    """A closing with its log rows. `is_harvest`: the list was harvested, so that the site's dates move on.

    An incomplete site run is no harvest: its site stays due, and its list is read again.
    """

    closing: Closing
    totals: totals.Totals
    listed: int
    status: SiteRunStatus
    is_harvest: bool


def _end(closing: Closing, counted: totals.Totals) -> _End:
    listed = sum(counted.outcomes.values()) if closing.listed is None else closing.listed
    status = closing.status or counted.status(listed, closing.site_run.site.options.validation)
    is_whole = closing.status is None and status is not SiteRunStatus.INCOMPLETE
    return _End(closing, counted, listed, status, is_whole and closing.site_run.kind is not SiteRunKind.RETRY)


def _problems_of(end: _End) -> EndedSiteRun:
    site_run, outcomes = end.closing.site_run, end.totals.outcomes
    others = any(outcomes.get(kind) for kind in OutcomeKind if kind not in FINE_OUTCOMES)
    list_was_read = end.closing.status is None and end.status is not SiteRunStatus.INCOMPLETE
    has_findings = bool(end.totals.warnings or end.totals.has_list_errors or others or end.closing.status)
    ids, is_complete = (site_run.site.site_id, site_run.site_run_id), end.closing.is_complete
    return EndedSiteRun(*ids, site_run.kind, list_was_read, has_findings, is_complete)


def _closed_columns(end: _End, dates: Mapping[int, date | None], stamp: Stamp) -> dict[str, object]:
    site_run, site = end.closing.site_run, end.closing.site_run.site
    # The phases of the part before an interruption, or of the slices before, are not known.
    phases = None if site_run.resumed else end.closing.phases
    return {
        "this": site_run.site_run_id,
        "status": end.status.value,
        "ended_at": stamp.now,
        "failure_reason": end.closing.reason,
        "next_harvest": dates.get(site.site_id) or site.next_harvest,
        **end.totals.columns(end.listed),
        **(phases.columns() if phases else UNKNOWN_TIMES),
    }


def _reported(
    session: Session,
    owners: Mapping[int, Whose],
    registered: Mapping[int, Site | BrokenSite],
    stamp: Stamp,
    context: ReportContext,
) -> list[bool]:
    """Queue the reports that are owed for these site runs; for each, True if its report was made.

    A report that cannot be made is our own mistake: nothing else is lost for it.
    """
    try:
        # Imported here: templates and mail would take 7 MB of a run's memory from its beginning.
        from metaharvest.mail.outbox import queue_all
        from metaharvest.reports.compose import site_reports

        with session.begin_nested():
            owed = site_reports(session, list(owners), registered, context)
            queued = queue_all(session, owed, stamp.run_id, stamp.now)
            rows = [(report_queued(owed[site_run_id]), owners[site_run_id]) for site_run_id in queued]
            write_log(session, rows, stamp)
        return [True] * len(owners)
    except Exception as error:
        if is_lost(error):
            raise
        if len(owners) > 1:
            one_by_one = [_reported(session, dict([each]), registered, stamp, context) for each in owners.items()]
            return [is_well for [is_well] in one_by_one]
        write_log(session, [(not_reported(error), owner) for owner in owners.values()], stamp)
        return [False]


def report_queued(report: Report) -> LogRow:
    """The log row of a report that waits to be delivered."""
    if report.recipients:
        message = f"A report to {', '.join(report.recipients)} was queued: {report.subject}"
    else:
        message = f"A report was written, and nobody gets it: {report.subject}"
    return LogRow("ReportQueued", message)


NOT_MADE = "A report could not be made"


def not_reported(error: Exception) -> LogRow:
    """The log row of a report that could not be made."""
    log.exception("A report could not be made", exc_info=error)
    finding = internal_error(error, NOT_MADE)
    return LogRow("SiteError", finding.message, (finding,))
