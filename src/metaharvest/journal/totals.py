"""The totals of site runs, counted from the log, and the statuses that follow from them; the times of their documents.

The totals of sites over weeks are kept, so that the figures of a year need not read each site run. They are added up
again at the end of each run, and when site runs of other days have changed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from sqlalchemy import ColumnElement, Select, bindparam, case, delete, func, insert, literal, select, true
from sqlalchemy.orm import Session, aliased

from metaharvest.database.models import Base, HarvestDetailLog, HarvestLog, HarvestRun, HarvestSiteRun, SiteTotals
from metaharvest.model import ERROR_OUTCOMES, HARVESTED, OutcomeKind, SiteRunKind, SiteRunStatus, ValidationLevel
from metaharvest.model.values import frozen
from metaharvest.queries.site_totals import SUMS, Span, runs_between, totals_of_sites


@frozen
class Totals:
    """The totals of a site run in the log: its documents by outcome, its warnings, and errors of its list."""

    outcomes: Mapping[OutcomeKind, int]
    warnings: int
    has_list_errors: bool = False

    def columns(self, listed: int) -> dict[str, object]:
        """The columns of harvest_site_run with these totals."""
        counts = {kind.column: self.outcomes.get(kind, 0) for kind in OutcomeKind}
        return {"listed": listed, "warnings": self.warnings, **counts}

    def status(self, listed: int, level: ValidationLevel | None = None) -> SiteRunStatus:
        """The status of a site run with these totals, of a site with this level.

        Every listed document has exactly one outcome, or the site run is incomplete. Documents that were put off need
        attention as errors do, and so do records that cannot be named: the report must not say that all is well. The
        mistakes of a loose site are warnings, not errors; a refusal by the target is an error.
        """
        if sum(self.outcomes.values()) != listed:
            return SiteRunStatus.INCOMPLETE
        is_loose = level is ValidationLevel.LOOSE
        errors = {OutcomeKind.UPLOAD_ERROR} if is_loose else ERROR_OUTCOMES
        if self.has_list_errors or any(self.outcomes.get(kind) for kind in (*errors, OutcomeKind.DEFERRED)):
            return SiteRunStatus.WITH_ERRORS
        return SiteRunStatus.SUCCEEDED


def count(session: Session, without_rows: Mapping[int, Mapping[OutcomeKind, int]]) -> dict[int, Totals]:
    """The totals of site runs, by number: counted from the log, plus documents that have no rows there."""
    site_runs = {"site_runs": list(without_rows)}
    outcomes = {site_run_id: dict(numbers) for site_run_id, numbers in without_rows.items()}
    for site_run_id, *numbers in session.execute(_OUTCOMES, site_runs):
        for kind, number in zip(OutcomeKind, numbers, strict=True):
            outcomes[site_run_id][kind] = outcomes[site_run_id].get(kind, 0) + number
    warnings = {row[0]: row[1] for row in session.execute(_WARNINGS, site_runs)}
    wrong = set(session.scalars(_LIST_ERRORS, site_runs))
    return {
        site_run_id: Totals(numbers, warnings.get(site_run_id, 0), site_run_id in wrong)
        for site_run_id, numbers in outcomes.items()
    }


@frozen
class LastListing:
    """The number of documents in the list that was last harvested whole, `duplicates` among them; and its URL."""

    listed: int
    list_url: str | None
    duplicates: int


def last_listings(session: Session, site_ids: Collection[int]) -> dict[int, LastListing]:
    """By site, the list that was last harvested whole."""
    rows = session.execute(_LAST_LISTINGS, {"sites": list(site_ids)})
    return {site_id: LastListing(*listing) for site_id, *listing in rows}


def is_whole_list(its: type[HarvestSiteRun]) -> Sequence[ColumnElement[bool]]:
    """The conditions of a site run that harvested a whole list."""
    return (
        its.kind != SiteRunKind.RETRY.value,
        its.rehearsal.is_(False),
        its.status.in_(HARVESTED),
    )


_LOG = Base.metadata.tables[HarvestLog.__tablename__]
_DETAILS = Base.metadata.tables[HarvestDetailLog.__tablename__]
_SITE_RUNS = Base.metadata.tables[HarvestSiteRun.__tablename__]
_THESE = _LOG.c.site_run_id.in_(bindparam("site_runs", expanding=True))
# To group by outcomes as well, SQLite sorts all rows: 6 MB for 140,000 documents.
_OUTCOMES = (
    select(_LOG.c.site_run_id, *(func.count(case((_LOG.c.outcome == kind.value, 1))) for kind in OutcomeKind))
    .where(_THESE, _LOG.c.outcome.is_not(None))
    .group_by(_LOG.c.site_run_id)
)
_WARNINGS = (
    select(_LOG.c.site_run_id, func.count())
    .join(_DETAILS, _DETAILS.c.harvest_log_id == _LOG.c.harvest_log_id)
    .where(_THESE, _DETAILS.c.level == "warning")
    .group_by(_LOG.c.site_run_id)
)
_LIST_ERRORS = (
    select(_LOG.c.site_run_id)
    .join(_DETAILS, _DETAILS.c.harvest_log_id == _LOG.c.harvest_log_id)
    .where(
        _THESE,
        _LOG.c.document_id.is_(None),
        _LOG.c.harvest_operation_code == "ListRecordsWarning",
        _DETAILS.c.level == "error",
    )
    .distinct()
)
_LAST_LISTINGS = select(*_SITE_RUNS.c["site_schedule_id", "listed", "list_url", "duplicate"]).where(
    _SITE_RUNS.c.site_run_id.in_(
        select(func.max(_SITE_RUNS.c.site_run_id))
        .where(
            _SITE_RUNS.c.site_schedule_id.in_(bindparam("sites", expanding=True)),
            *is_whole_list(HarvestSiteRun),
        )
        .group_by(_SITE_RUNS.c.site_schedule_id)
    )
)


@dataclass(slots=True)
class Phases:
    """Sums over the documents of one site run, in seconds; added to during the harvest.

    `server`: the site's server answers; `waiting`: for shared resources: connections to its host, places among all
    documents, memory; `checking`: also waiting for a free worker; `sending`: to a target outside of the harvester's
    database; `writing`: documents, log rows and ledger, without the commit that a group shares. The event loop adds to
    all but `writing`; only the writer's thread adds to that.
    """

    server: float = 0.0
    waiting: float = 0.0
    checking: float = 0.0
    sending: float = 0.0
    writing: float = 0.0

    def columns(self) -> dict[str, float]:
        """The columns of harvest_site_run."""
        storing = self.sending + self.writing
        sums = {"server": self.server, "waiting": self.waiting, "checking": self.checking, "storing": storing}
        return {f"{phase}_seconds": round(seconds, 3) for phase, seconds in sums.items()}


UNKNOWN_TIMES = dict.fromkeys(Phases().columns())
"""The columns of a site run without measurements."""


def keep_totals_of_run(session: Session, run_id: int) -> None:
    """Add up the totals of the sites of this run over the days around it."""
    its_own = aliased(HarvestSiteRun)
    days = session.scalars(select(HarvestRun.harvest_date).where(HarvestRun.run_id == run_id)).all()
    keep_totals(session, days, select(its_own.site_schedule_id).where(its_own.run_id == run_id))


def keep_totals(session: Session, days: Iterable[date], sites: Select[int] | None = None) -> None:
    """Add up the totals over the spans of these days; `sites` selects the numbers of the sites, None: all."""
    names = f"site_schedule_id {SUMS} failing last_success".split()
    session.flush()
    for span in {Span.of(day) for day in days}:
        old = delete(SiteTotals).where(SiteTotals.first_day == span.first)
        is_meant = true() if sites is None else HarvestSiteRun.site_schedule_id.in_(sites)
        session.execute(old if sites is None else old.where(SiteTotals.site_schedule_id.in_(sites)))
        runs = runs_between(session, span.first, span.last).values()
        totals = totals_of_sites([number for of_day in runs for number in of_day], is_meant).subquery()
        query = select(literal(span.first), *(totals.c[name] for name in names))
        session.execute(insert(SiteTotals).from_select(["first_day", *names], query))


def move_totals(session: Session, limit: date, today: date) -> None:
    """Add up the totals again, after runs with days behind `limit` got today's date."""
    session.execute(delete(SiteTotals).where(SiteTotals.first_day > today))
    keep_totals(session, [today, limit])
