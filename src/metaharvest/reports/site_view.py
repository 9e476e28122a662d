"""What a site report says, read from the journal: one frozen value, every text in it cleaned and ready to be shown.

Which site runs deserve a report at all is decided in wanted.py; how the value looks is the templates' affair.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, bindparam, case, func, select
from sqlalchemy.orm import Session

from metaharvest.config.settings import Settings
from metaharvest.database.models import HarvestDocument, HarvestLog, HarvestRun, HarvestSiteRun
from metaharvest.model import ERROR_OUTCOMES, OutcomeKind, Site, SiteRunKind, SiteRunStatus
from metaharvest.reports import words
from metaharvest.reports.findings import Group, attention, is_told, warnings
from metaharvest.reports.tables import docid_of
from metaharvest.sites.registry import BrokenSite
from metaharvest.text import one_line, shown_url


@dataclass(frozen=True, slots=True)
class Name:
    """One document that is only named: its docid, its URL, and what is notable about it."""

    docid: str
    url: str
    note: str = ""


_WENT_IN = (OutcomeKind.INSERTED, OutcomeKind.UPDATED)


@dataclass(frozen=True, slots=True)
class Names:
    """Documents that are only named: how many there are, and the first of them."""

    count: int
    rows: tuple[Name, ...] = ()

    @property
    def more(self) -> int:
        """How many documents are not named."""
        return max(self.count - len(self.rows), 0)


@dataclass(frozen=True, slots=True)
class Total:
    """One number among the totals; `tone` is good, doubtful, bad or plain."""

    label: str
    number: int
    tone: str


@dataclass(frozen=True, slots=True)
class Table:
    """What became of the table of all documents: told in a sentence, and in a few words for use after `and 9 more`."""

    sentence: str = ""
    where: str = ""


NO_TABLE = Table()


@dataclass(frozen=True, slots=True)
class SiteView:
    """A site report's content. `recipients` are the site's contacts."""

    network: str
    site: str
    date: str
    story: str
    tone: str
    sentence: str
    reason: str
    listed: int
    totals: tuple[Total, ...]
    attention: tuple[Group, ...]
    warnings: tuple[Group, ...]
    mended: Names
    inserted: Names
    updated: Names
    unchanged: Names
    next_harvest: str
    time_spent: str
    registered: tuple[tuple[str, str], ...]
    recipients: tuple[str, ...]
    administrators: tuple[str, ...]
    target: str
    site_run: int
    table: Table = NO_TABLE


def counts_of(site_run: HarvestSiteRun) -> dict[OutcomeKind, int]:
    """The totals of a site run by outcome."""
    return {kind: getattr(site_run, kind.column) or 0 for kind in OutcomeKind}


def is_quiet(site_run: HarvestSiteRun) -> bool:
    """Whether the totals say that there is nothing to tell: every document was there already, and nothing is doubtful.

    Then the log has no outcome and no finding of this site run, and need not be asked for any.
    """
    return (
        site_run.status == SiteRunStatus.SUCCEEDED.value
        and not site_run.warnings
        and site_run.listed == (site_run.unchanged or 0)
    )


def totals_of(listed: int, counts: words.Counts, warned: int) -> tuple[Total, ...]:
    """The totals as shown: listed, the fine outcomes always, the others where there are any."""
    if not listed:
        return ()
    shown = [Total("listed", listed, "plain")]
    for kind in OutcomeKind:
        number = counts.get(kind, 0)
        if kind in words.FINE or number:
            shown.append(Total(words.LABELS[kind], number, _tone(kind, number)))
    if warned:
        shown.append(Total("warning" if warned == 1 else "warnings", warned, "doubtful"))
    return tuple(shown)


def _tone(kind: OutcomeKind, number: int) -> str:
    if kind in ERROR_OUTCOMES:
        return "bad"
    if kind in words.ATTENTION:
        return "doubtful"
    return "good" if number and kind is not OutcomeKind.UNCHANGED else "plain"


def site_view(
    session: Session,
    site_run: HarvestSiteRun,
    run: HarvestRun,
    registered: Site | BrokenSite | None,
    settings: Settings,
    target: str,
    now: datetime,
) -> SiteView:
    """Read everything that the report of this site run tells. `registered` is the site as it stands now."""
    site_run_id = site_run.site_run_id
    schedule = registered if isinstance(registered, Site) else None
    status, kind, counts = SiteRunStatus(site_run.status), SiteRunKind(site_run.kind), counts_of(site_run)
    limit, today = settings.reports.lines_per_group, run.harvest_date
    # What the totals say there is none of is not asked for: most nights most sites have nothing to tell.
    is_well = status is SiteRunStatus.SUCCEEDED and not words.total(counts, words.ATTENTION)
    problems = () if is_well else attention(session, site_run_id, today, limit)
    reason = one_line(site_run.failure_reason or "", 1000)
    return SiteView(
        network=one_line(settings.harvester.name),
        site=one_line(site_run.site_name),
        date=today.isoformat(),
        story=words.site_story(status, counts),
        tone=words.site_tone(status, counts),
        sentence=words.site_sentence(status, kind, counts, site_run.listed),
        reason="" if is_told(reason, problems) else reason,
        listed=site_run.listed,
        totals=totals_of(site_run.listed, counts, site_run.warnings),
        attention=problems,
        warnings=warnings(session, site_run_id, today, limit) if site_run.warnings else (),
        mended=_mended(session, site_run, limit) if words.total(counts, _WENT_IN) else Names(0),
        inserted=_ended_as(session, site_run, OutcomeKind.INSERTED, limit),
        updated=_ended_as(session, site_run, OutcomeKind.UPDATED, limit),
        unchanged=_unchanged(session, site_run, limit),
        next_harvest=_next_harvest(site_run, run, schedule),
        time_spent=_time_spent(session, site_run, now),
        registered=_registered(site_run, schedule),
        recipients=registered.contacts if registered else (),
        administrators=settings.harvester.administrators,
        target=one_line(target),
        site_run=site_run_id,
    )


def _ended_as(session: Session, site_run: HarvestSiteRun, kind: OutcomeKind, limit: int) -> Names:
    if not counts_of(site_run).get(kind):
        return Names(0)
    log = HarvestLog
    query = (
        select(log)
        .where(log.site_run_id == site_run.site_run_id, log.outcome == kind.value)
        .order_by(log.document_id, log.revision)
        .limit(limit)
    )
    rows = tuple(_name(row) for row in session.scalars(query))
    return Names(max(getattr(site_run, kind.column), len(rows)), rows)


def _name(row: HarvestLog, note: str = "") -> Name:
    was = row.target_revision
    if not note and was is not None and row.revision is not None and was < row.revision:
        note = f"was revision {was}"
    return Name(one_line(docid_of(row.document_id, row.revision)), shown_url(row.document_url or ""), note)


def _mended(session: Session, site_run: HarvestSiteRun, limit: int) -> Names:
    """Documents that went in now and had failed since (and in) the last harvest of the whole list."""
    log, before = HarvestLog, HarvestLog.__table__.alias("before")
    earlier = list(earlier_site_runs(session, site_run))
    failed_before = (
        select(before.c.harvest_log_id)
        .where(
            before.c.site_run_id.in_(earlier),
            before.c.document_id == log.document_id,
            before.c.outcome.in_([kind.value for kind in ERROR_OUTCOMES]),
        )
        .exists()
    )
    went_in = log.outcome.in_([OutcomeKind.INSERTED.value, OutcomeKind.UPDATED.value])
    here: ColumnElement[bool] = (log.site_run_id == site_run.site_run_id) & went_in & failed_before
    count = session.scalar(select(func.count()).select_from(log).where(here)) or 0
    rows = session.scalars(select(log).where(here).order_by(log.document_id, log.revision).limit(limit))
    return Names(count, tuple(_name(row) for row in rows))


def earlier_site_runs(session: Session, site_run: HarvestSiteRun) -> Iterator[int]:
    """The site's runs before this one, back to the last one that read the whole list."""
    query = (
        select(HarvestSiteRun)
        .where(
            HarvestSiteRun.site_schedule_id == site_run.site_schedule_id,
            HarvestSiteRun.site_run_id < site_run.site_run_id,
        )
        .order_by(HarvestSiteRun.site_run_id.desc())
        .limit(30)
    )
    for earlier in session.scalars(query):
        yield earlier.site_run_id
        if earlier.kind != SiteRunKind.RETRY.value and earlier.listed:
            return


def _unchanged(session: Session, site_run: HarvestSiteRun, limit: int) -> Names:
    """Those first of which the repository has a higher revision than the list names.

    None for a retry: which of the site's documents it asked for is not kept, beyond those that ended otherwise.
    """
    if not site_run.unchanged or site_run.kind == SiteRunKind.RETRY.value:
        return Names(0)
    which = {"site": site_run.site_schedule_id, "limit": min(limit, site_run.unchanged)}
    rows = tuple(_unchanged_name(*row) for row in session.execute(_UNCHANGED, which))
    return Names(site_run.unchanged, rows)


_LEDGER = HarvestDocument
_UNCHANGED = (
    select(_LEDGER.document_id, _LEDGER.revision, _LEDGER.document_url, _LEDGER.target_revision)
    .where(_LEDGER.site_schedule_id == bindparam("site"), _LEDGER.outcome == OutcomeKind.UNCHANGED.value)
    .order_by(
        case((_LEDGER.target_revision > _LEDGER.revision, 0), else_=1),
        _LEDGER.document_id,
        _LEDGER.revision,
    )
    .limit(bindparam("limit"))
)


def _unchanged_name(document_id: str, revision: int, url: str, held: int | None) -> Name:
    note = f"the repository has revision {held}" if held is not None and held > revision else ""
    return Name(one_line(docid_of(document_id, revision)), shown_url(url), note)


def _next_harvest(site_run: HarvestSiteRun, run: HarvestRun, schedule: Site | None) -> str:
    if schedule is None:
        return "none: the site is not registered, or its registration cannot be used"
    if not schedule.enabled:
        return "none: the site is switched off"
    planned = site_run.next_harvest or schedule.next_harvest
    if planned is None or planned <= run.harvest_date:
        return "in the next run"
    return planned.isoformat()


def _time_spent(session: Session, site_run: HarvestSiteRun, now: datetime) -> str:
    """How long the harvest took, and how much of it the site's server; nothing where it was asked for no document."""
    log = HarvestLog
    fetched = words.total(counts_of(site_run), (*_WENT_IN, *ERROR_OUTCOMES))
    taken = words.duration(((site_run.ended_at or now) - site_run.started_at).total_seconds())
    if not fetched:
        return f"The harvest took {taken}."
    here = (log.site_run_id == site_run.site_run_id) & log.seconds.is_not(None) & log.outcome.is_not(None)
    number, mean = session.execute(select(func.count(), func.avg(log.seconds)).where(here)).one()
    if not number:
        return f"The harvest took {taken}."
    if number == 1:
        return f"The harvest took {taken}. Your server was asked for 1 document and took {words.duration(mean)}."
    slowest = session.scalars(select(log).where(here).order_by(log.seconds.desc()).limit(1)).one()
    docid = one_line(docid_of(slowest.document_id, slowest.revision))
    return (
        f"The harvest took {taken}. Your server was asked for {words.counted(number, 'document')} and took "
        f"{words.duration(mean)} for each on average; the slowest, {docid}, "
        f"took {words.duration(slowest.seconds or 0)}."
    )


def _registered(site_run: HarvestSiteRun, schedule: Site | None) -> tuple[tuple[str, str], ...]:
    if schedule is None:
        return (("Harvest list", shown_url(site_run.list_url or "")),)
    settings = [
        ("Harvest list", shown_url(schedule.list_url)),
        ("Harvested", words.frequency(schedule.frequency, schedule.unit)),
        ("Contacts", one_line(", ".join(schedule.contacts), 1000)),
        ("Reports", schedule.notify.value),
        ("Enabled", "yes" if schedule.enabled else "no"),
    ]
    if schedule.options.package_id_mismatch:
        settings.append(("package id mismatch", schedule.options.package_id_mismatch.value))
    if schedule.options.allow_networks:
        settings.append(("allow networks", ", ".join(str(network) for network in schedule.options.allow_networks)))
    return tuple((label, one_line(value, 2000)) for label, value in settings)
