"""The differences between two runs, site by site: the state of each site after the one, and after the other.

The state of a site after a run is its last harvest up to that run, with the later retries: so a site that was not due
in one of the runs has a state, too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any

from sqlalchemy import ColumnElement, Row, or_, select
from sqlalchemy.orm import Session

from metaharvest.database.batches import batches, grouped
from metaharvest.database.models import IS_FULL, HarvestLog, HarvestRun, HarvestSiteRun
from metaharvest.database.statements import place_of, rows_with
from metaharvest.errors import MetaharvestError
from metaharvest.model import OutcomeKind, SiteRunKind, SiteRunStatus
from metaharvest.model.actions import todo
from metaharvest.model.values import frozen
from metaharvest.queries.records import (
    FAILING,
    StoredFinding,
    columns,
    docid,
    failing,
    findings_under,
    row_of,
    would_be,
)
from metaharvest.queries.runs import no_such_run, site_number
from metaharvest.queries.sites import last_names
from metaharvest.queries.trends import READ_A_LIST, Harvest, harvests_of, newest_site_runs

CHANGES = ("newly_failing", "still_failing", "fixed", "inserted", "updated", "deleted")

CHANGE_COLUMNS = (
    "change", "docid", "document_id", "revision", "outcome", "rule", "line", "message", "outcome_before", "rule_before",
)  # fmt: skip
"""The fields of a ChangedDocument, in the order of a table."""

_DONE = (OutcomeKind.INSERTED.value, OutcomeKind.UPDATED.value, OutcomeKind.DELETED.value)
_FAILING = tuple(kind.value for kind in FAILING)
_SITE_RUN = "site_run_id run_id site_schedule_id kind status deferred access_error invalid upload_error"
_LOGGED = "site_run_id harvest_log_id document_id revision outcome message"
_AT_ONCE = 200
"""Sites that are read in one group of statements."""

_Row = Row[*tuple[Any, ...]]
_Logged = Mapping[int, Sequence[_Row]]


@frozen
class ComparedRun:
    """One of the two runs."""

    run_id: int
    harvest_date: date
    status: str


@frozen
class ChangeTotals:
    """The numbers of documents by change."""

    newly_failing: int
    still_failing: int
    fixed: int
    inserted: int
    updated: int
    deleted: int


@frozen(kw_only=True)
class ChangedDocument:
    """A document that changed or is failing; `change` is one of CHANGES.

    `rule`, `message` and `line` are from its first finding, if it is failing.
    """

    change: str
    docid: str | None
    document_id: str
    revision: int | None
    outcome: str | None
    rule: str | None = None
    message: str | None = None
    line: int | None = None
    outcome_before: str | None = None
    rule_before: str | None = None


@frozen
class ChangedSite:
    """The last harvest of a site `before` and `after`, and its documents. `log_kept`: the log still names these."""

    site: str | None
    site_id: int
    before: Harvest | None
    after: Harvest | None
    log_kept: bool
    totals: ChangeTotals
    documents: tuple[ChangedDocument, ...]


@frozen
class Changes:
    """The differences between two runs: each site that was harvested after the first, up to the second."""

    before: ComparedRun
    after: ComparedRun
    totals: ChangeTotals
    sites: tuple[ChangedSite, ...]


def changes(session: Session, first: int, second: int, site: str | None = None) -> Changes:
    """The differences from the run `first` to the run `second`, which is later; of one site, if it is named.

    Raises MetaharvestError for runs that are not there, and for those whose log was deleted.
    """
    before, after = _ends_of(session, first, second)
    number = None if site is None else site_number(session, site)
    between = [HarvestSiteRun.run_id > first, HarvestSiteRun.run_id <= second]
    if number is not None:
        between.append(HarvestSiteRun.site_schedule_id == number)
    site_ids = sorted(session.scalars(select(HarvestSiteRun.site_schedule_id).where(*between).distinct()))
    names = last_names(session)
    found = [site for some in batches(site_ids, _AT_ONCE) for site in _of_sites(session, names, some, first, second)]
    return Changes(
        before,
        after,
        _totals([document for each in found for document in each.documents]),
        tuple(sorted(found, key=lambda each: (str(each.site).lower(), each.site_id))),
    )


def changed_sites(session: Session, first: int, second: int, limit: int, after: int = 0) -> tuple[Changes, list[int]]:
    """As `changes`, for `limit` sites that have changes, without the first `after` of them, and with their totals.

    Also returns the numbers of all sites that have changes.
    """
    ends = _ends_of(session, first, second)
    names = last_names(session)
    site_ids = sorted(_with_changes(session, first, second), key=lambda each: (str(names.get(each)).lower(), each))
    found = list(_of_sites(session, names, site_ids[after : after + limit], first, second))
    return Changes(*ends, _totals([each for site in found for each in site.documents]), tuple(found)), site_ids


def _with_changes(session: Session, first: int, second: int) -> set[int]:
    """The sites harvested between the runs that have news, failures, or had failures before."""
    row = HarvestSiteRun
    news = row.inserted + row.updated + row.deleted > 0
    fails = or_(row.status != SiteRunStatus.SUCCEEDED.value, failing(row) > 0)
    between = (row.run_id > first, row.run_id <= second)
    harvested = set(session.scalars(select(row.site_schedule_id).where(*between).distinct()))
    changed = set(session.scalars(select(row.site_schedule_id).where(*between, or_(news, fails)).distinct()))
    failing_sites = select(row.site_schedule_id).where(fails)

    def failed_before(site_ids: Collection[int], *conditions: ColumnElement[bool]) -> set[int]:
        earlier = newest_site_runs(session, site_ids, row.run_id <= first, *conditions)
        return {each[0] for each in rows_with(session, failing_sites, row.site_run_id, earlier.values())}

    changed |= failed_before(harvested - changed)
    # A retry that went well tried some of the failing documents: the others may have left the list since.
    in_doubt = sorted(failed_before(harvested - changed, IS_FULL))
    found = (site for some in batches(in_doubt, _AT_ONCE) for site in _of_sites(session, {}, some, first, second))
    return changed | {site.site_id for site in found if site.documents}


def _ends_of(session: Session, first: int, second: int) -> tuple[ComparedRun, ComparedRun]:
    """The two runs. Raises MetaharvestError."""
    if first >= second:
        raise MetaharvestError(f"Name the earlier run first: the run {second} is not later than the run {first}.")
    before, after = _compared(session, first), _compared(session, second)
    for run_id in (first, second):
        _require_log(session, run_id)
    return before, after


def _compared(session: Session, run_id: int) -> ComparedRun:
    run = row_of(session, HarvestRun, run_id)
    if run is None:
        raise no_such_run(run_id)
    return ComparedRun(run.run_id, run.harvest_date, run.status)


def _require_log(session: Session, run_id: int) -> None:
    """Raises MetaharvestError if the log of this run was deleted."""
    if session.scalar(select(HarvestLog.run_id).where(HarvestLog.run_id == run_id).limit(1)) is None:
        raise MetaharvestError(
            f"The log of the run {run_id} has been deleted ([harvester] log_period_days), so what it did to each "
            f"document is not known any more; {todo('runs.show', run_id=run_id)} has its totals."
        )


def _totals(documents: Sequence[ChangedDocument]) -> ChangeTotals:
    return ChangeTotals(**{change: sum(each.change == change for each in documents) for change in CHANGES})


@frozen
class _Standing:
    """The state of a site after a run: its last harvest, and the failing documents, by document id.

    `log_kept`: the log still names these. The number `failing` in `last` is their number, also if the last harvest
    could not read the list, and if some were tried again since.
    """

    last: Harvest | None
    documents: Mapping[str, ChangedDocument]
    log_kept: bool


def _of_sites(
    session: Session, names: Mapping[int, str], site_ids: Sequence[int], first: int, second: int
) -> Iterator[ChangedSite]:
    """The changes of these sites. The number of statements does not grow with the sites."""
    known = _site_runs(session, site_ids, first, second)
    ends = {
        site_id: (_SiteEnd.of([each for each in rows if each.run_id <= first]), _SiteEnd.of(rows))
        for site_id, rows in known.items()
    }
    between = {site_id: [each for each in rows if each.run_id > first] for site_id, rows in known.items()}
    logged = _logged(session, [end for both in ends.values() for end in both], between.values())
    last = harvests_of(session, {end.last for both in ends.values() for end in both if end.last is not None})
    failing_rows = [row.harvest_log_id for rows in logged.values() for row in rows if row.outcome in _FAILING]
    findings = findings_under(session, failing_rows)
    for site_id, (then, now) in ends.items():
        before, after = (_standing(end, last, logged, findings) for end in (then, now))
        done = _done([row for each in between[site_id] for row in logged.get(each.site_run_id, ())])
        documents = [*_changed(before.documents, after.documents, done), *done]
        yield ChangedSite(
            names.get(site_id),
            site_id,
            before.last,
            after.last,
            before.log_kept and after.log_kept,
            _totals(documents),
            tuple(sorted(documents, key=lambda each: (CHANGES.index(each.change), place_of(each.document_id)))),
        )


def _site_runs(session: Session, site_ids: Sequence[int], first: int, second: int) -> dict[int, list[_Row]]:
    """By site, its site runs up to the run `second`, from its last list up to the run `first` on.

    They are in the order of their runs. A resumed site run has the number of the run that resumed it.
    """
    row = HarvestSiteRun
    read_a_list = (row.run_id <= first, IS_FULL, row.status.in_(READ_A_LIST))
    in_first = select(row.site_schedule_id).where(row.run_id == first, row.site_schedule_id.in_(site_ids), *read_a_list)
    begins = dict.fromkeys(session.scalars(in_first), first)
    others = [each for each in site_ids if each not in begins]
    numbers = newest_site_runs(session, others, *read_a_list) if others else {}
    of_numbers = select(row.site_schedule_id, row.run_id).where(row.site_run_id.in_(numbers.values()))
    begins |= {each[0]: each[1] for each in session.execute(of_numbers)} if numbers else {}
    query = select(*columns(row, _SITE_RUN)).where(row.run_id <= second).order_by(row.run_id, row.site_run_id)
    # The sites with a list in `first` by their runs, the others by their numbers: each has an index.
    near = query.where(row.run_id >= first, row.site_schedule_id.in_(site_ids))
    far = query.where(row.run_id < first, row.site_schedule_id.in_(others))
    found: dict[int, list[_Row]] = {site_id: [] for site_id in site_ids}
    for each in [*(session.execute(far) if others else ()), *session.execute(near)]:
        if each.run_id >= begins.get(each.site_schedule_id, 0):
            found[each.site_schedule_id].append(each)
    return found


@frozen
class _SiteEnd:
    """The site runs that say how a site stands after a run: its last harvest, its last list, all since that list."""

    last: int | None
    listing: _Row | None
    later: Sequence[_Row]

    @classmethod
    def of(cls, site_runs: Sequence[_Row]) -> _SiteEnd:
        full = [at for at, each in enumerate(site_runs) if each.kind != SiteRunKind.RETRY.value]
        last = site_runs[full[-1]].site_run_id if full else None
        lists = [at for at in full if site_runs[at].status in READ_A_LIST]
        if not lists:
            return cls(last, None, site_runs)
        return cls(last, site_runs[lists[-1]], site_runs[lists[-1] + 1 :])


def _logged(session: Session, ends: Iterable[_SiteEnd], between: Iterable[Sequence[_Row]]) -> _Logged:
    """The outcomes in the log that count, by site run; of a list before the first run only the failures."""
    ends = list(ends)
    whole = {each.site_run_id for rows in (*between, *(end.later for end in ends)) for each in rows}
    lists = {end.listing.site_run_id for end in ends if end.listing is not None} - whole
    query = select(*columns(HarvestLog, _LOGGED))
    meant = (
        (lists, HarvestLog.outcome.in_(_FAILING)),
        (whole, HarvestLog.outcome != OutcomeKind.DUPLICATE.value),
    )
    return grouped(
        (row.site_run_id, row)
        for site_run_ids, counts in meant
        for row in rows_with(session, query.where(counts), HarvestLog.site_run_id, sorted(site_run_ids))
    )


def _changed(
    before: Mapping[str, ChangedDocument], after: Mapping[str, ChangedDocument], done: Sequence[ChangedDocument]
) -> Iterator[ChangedDocument]:
    """The documents that fail, and those that no longer do, with their new outcome.

    A fixed document has no outcome if it is there already, or no longer listed.
    """
    by_id = {each.document_id: each for each in done}
    for document_id, now in after.items():
        if document_id not in before:
            yield now
    for document_id, then in before.items():
        earlier: dict[str, Any] = {"outcome_before": then.outcome, "rule_before": then.rule}
        if document_id in after:
            yield replace(after[document_id], change="still_failing", **earlier)
        else:
            fixed = by_id.get(document_id) or replace(then, outcome=None, rule=None, message=None, line=None)
            yield replace(fixed, change="fixed", **earlier)


def _standing(
    end: _SiteEnd, last: Mapping[int, Harvest], logged: _Logged, findings: Mapping[int, Sequence[StoredFinding]]
) -> _Standing:
    documents: dict[str, ChangedDocument] = {}
    number_lost = 0
    if end.listing is not None:
        # A document in the list without an entry here was well; after a retry, every outcome counts.
        rows = [row for row in logged.get(end.listing.site_run_id, ()) if row.outcome in _FAILING]
        documents = {each.document_id: each for each in _ends(rows, findings)}
        number_lost = 0 if documents else failing(end.listing)
    for site_run in end.later:
        for each in _ends(logged.get(site_run.site_run_id, ()), findings):
            documents.pop(each.document_id, None)
            if each.outcome in _FAILING:
                documents[each.document_id] = each
    harvest = None if end.last is None else replace(last[end.last], failing=number_lost or len(documents))
    return _Standing(harvest, documents, log_kept=not number_lost)


def _ends(rows: Iterable[_Row], findings: Mapping[int, Sequence[StoredFinding]]) -> Iterable[ChangedDocument]:
    """The outcomes of documents in a site run, as if all were new; the highest of several revisions is last."""
    for row in sorted(rows, key=lambda row: (row.document_id, row.revision or 0)):
        found = sorted(findings.get(row.harvest_log_id, ()), key=lambda finding: finding.level != "error")
        yield ChangedDocument(
            change="newly_failing",
            docid=docid(row.document_id, row.revision),
            document_id=row.document_id,
            revision=row.revision,
            outcome=row.outcome,
            rule=found[0].rule if found else None,
            message=found[0].message if found else row.message,
            line=found[0].line if found else None,
        )


def _done(rows: Sequence[_Row]) -> list[ChangedDocument]:
    """The documents that were inserted, updated or deleted in these rows of the log, in order, each once.

    A rehearsal counts for documents that were not changed in any real run.
    """
    done: dict[tuple[str, int, str], None] = {}
    rehearsed: dict[tuple[str, int, str], None] = {}
    for row in sorted(rows, key=lambda row: row.harvest_log_id):
        if row.outcome in _DONE:
            key = (row.document_id, row.revision, row.outcome)
            (rehearsed if would_be(row.outcome, row.message) else done)[key] = None
    taken = {key[:2] for key in done}
    return [
        ChangedDocument(
            change=kind, docid=docid(document_id, revision), document_id=document_id, revision=revision, outcome=kind
        )
        for document_id, revision, kind in (*(key for key in rehearsed if key[:2] not in taken), *done)
    ]
