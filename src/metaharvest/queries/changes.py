"""The differences between two runs, site by site: the state of each site after the one, and after the other.

The state of a site after a run is its last harvest up to that run, with the later retries: so a site that was not due
in one of the runs has a state, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from sqlalchemy import Row, select
from sqlalchemy.orm import Session

from metaharvest.database.models import HarvestLog, HarvestSiteRun
from metaharvest.errors import MetaharvestError
from metaharvest.model import ERROR_OUTCOMES, OutcomeKind, SiteRunKind
from metaharvest.model.actions import todo
from metaharvest.queries.records import columns, docid, findings_under, would_be
from metaharvest.queries.runs import run_record, site_number
from metaharvest.queries.sites import last_names
from metaharvest.queries.trends import READ_A_LIST, Harvest, failing, harvest

CHANGES = ("newly_failing", "still_failing", "fixed", "inserted", "updated", "deleted")

_DONE = (OutcomeKind.INSERTED.value, OutcomeKind.UPDATED.value, OutcomeKind.DELETED.value)
_FAILING = tuple(kind.value for kind in (*ERROR_OUTCOMES, OutcomeKind.DEFERRED))
_SITE_RUN = "site_run_id run_id kind status deferred access_error invalid upload_error"


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """One of the two runs."""

    run_id: int
    harvest_date: date
    status: str


@dataclass(frozen=True, slots=True)
class ChangeTotals:
    """The numbers of documents by change."""

    newly_failing: int
    still_failing: int
    fixed: int
    inserted: int
    updated: int
    deleted: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedDocument:
    """A document that changed or is failing; `change` is one of CHANGES.

    `rule`, `message` and `line` are those of its first finding, if it is failing.
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


@dataclass(frozen=True, slots=True)
class ChangedSite:
    """The last harvest of a site `before` and `after`, and its documents. `log_kept`: the log still names these."""

    site: str | None
    site_id: int
    before: Harvest | None
    after: Harvest | None
    log_kept: bool
    totals: ChangeTotals
    documents: tuple[ChangedDocument, ...]


@dataclass(frozen=True, slots=True)
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
    if first >= second:
        raise MetaharvestError(f"Name the earlier run first: the run {second} is not later than the run {first}.")
    before, after = _compared(session, first), _compared(session, second)
    for run_id in (first, second):
        _require_log(session, run_id)
    number = None if site is None else site_number(session, site)
    names = last_names(session)
    between = (HarvestSiteRun.run_id > first, HarvestSiteRun.run_id <= second)
    site_ids = session.scalars(select(HarvestSiteRun.site_schedule_id).where(*between).distinct()).all()
    found = [_of_site(session, names.get(each), each, first, second) for each in site_ids if number in (None, each)]
    return Changes(
        before,
        after,
        _totals([document for each in found for document in each.documents]),
        tuple(sorted(found, key=lambda each: (str(each.site).lower(), each.site_id))),
    )


def _compared(session: Session, run_id: int) -> ComparedRun:
    run = run_record(session, run_id)
    return ComparedRun(run.run_id, run.harvest_date, run.status)


def _totals(documents: Sequence[ChangedDocument]) -> ChangeTotals:
    return ChangeTotals(**{change: sum(each.change == change for each in documents) for change in CHANGES})


@dataclass(frozen=True, slots=True)
class _End:
    """The outcome of a document, with its first finding if it is failing."""

    docid: str | None
    document_id: str
    revision: int | None
    outcome: str
    rule: str | None = None
    message: str | None = None
    line: int | None = None


@dataclass(frozen=True, slots=True)
class _Standing:
    """The state of a site after a run: its last harvest, and the failing documents, by document id.

    `log_kept`: the log still names these. The number `failing` in `last` is their number, also if the last harvest
    could not read the list, and if some were tried again since.
    """

    last: Harvest | None
    documents: Mapping[str, _End]
    log_kept: bool


def _of_site(session: Session, name: str | None, site_id: int, first: int, second: int) -> ChangedSite:
    query = select(*columns(HarvestSiteRun, _SITE_RUN)).where(
        HarvestSiteRun.site_schedule_id == site_id, HarvestSiteRun.run_id <= second
    )
    # By run: a site run that was resumed by a later run has that run's number, and its own from before.
    site_runs = session.execute(query.order_by(HarvestSiteRun.run_id, HarvestSiteRun.site_run_id)).all()
    earlier = [each for each in site_runs if each.run_id <= first]
    before, after = _standing(session, earlier), _standing(session, site_runs)
    done = _done(session, [each.site_run_id for each in site_runs if each.run_id > first])
    documents = [*_failing(before.documents, after.documents), *_fixed(before.documents, after.documents, done), *done]
    return ChangedSite(
        name,
        site_id,
        before.last,
        after.last,
        before.log_kept and after.log_kept,
        _totals(documents),
        tuple(sorted(documents, key=lambda each: CHANGES.index(each.change))),
    )


def _failing(before: Mapping[str, _End], after: Mapping[str, _End]) -> Iterator[ChangedDocument]:
    for document_id, now in after.items():
        then = before.get(document_id)
        yield ChangedDocument(
            change="newly_failing" if then is None else "still_failing",
            docid=now.docid,
            document_id=document_id,
            revision=now.revision,
            outcome=now.outcome,
            rule=now.rule,
            message=now.message,
            line=now.line,
            outcome_before=then.outcome if then else None,
            rule_before=then.rule if then else None,
        )


def _fixed(
    before: Mapping[str, _End], after: Mapping[str, _End], done: Sequence[ChangedDocument]
) -> Iterator[ChangedDocument]:
    """Documents that no longer fail, with their new outcome: none if they are there already, or no longer listed."""
    by_id = {each.document_id: each for each in done}
    for document_id, then in before.items():
        if document_id not in after:
            now = by_id.get(document_id)
            yield ChangedDocument(
                change="fixed",
                docid=now.docid if now else then.docid,
                document_id=document_id,
                revision=now.revision if now else then.revision,
                outcome=now.outcome if now else None,
                outcome_before=then.outcome,
                rule_before=then.rule,
            )


def _standing(session: Session, site_runs: Sequence[Row[*tuple[Any, ...]]]) -> _Standing:
    """The state of the site after the last of these site runs."""

    def is_full(site_run: Row[*tuple[Any, ...]]) -> bool:
        return bool(site_run.kind != SiteRunKind.RETRY.value)

    full = [each for each in site_runs if is_full(each)]
    last = harvest(session, full[-1].site_run_id) if full else None
    documents: dict[str, _End] = {}
    number_lost, later = 0, site_runs
    if listings := [at for at, each in enumerate(site_runs) if is_full(each) and each.status in READ_A_LIST]:
        # A document in the list without an entry here was well; after a retry, every outcome counts.
        listing, *later = site_runs[listings[-1] :]
        documents = {each.document_id: each for each in _ends(session, listing.site_run_id, only_failing=True)}
        number_lost = 0 if documents else failing(listing)
    for site_run in later:
        for each in _ends(session, site_run.site_run_id):
            documents.pop(each.document_id, None)
            if each.outcome in _FAILING:
                documents[each.document_id] = each
    last = last and replace(last, failing=number_lost or len(documents))
    return _Standing(last, dict(sorted(documents.items())), log_kept=not number_lost)


def _ends(session: Session, site_run_id: int, *, only_failing: bool = False) -> Iterable[_End]:
    """The outcomes of documents in a site run; of those with several revisions the highest is last."""
    meant = HarvestLog.outcome.in_(_FAILING) if only_failing else HarvestLog.outcome != OutcomeKind.DUPLICATE.value
    query = (
        select(*columns(HarvestLog, "harvest_log_id document_id revision outcome message"))
        .where(HarvestLog.site_run_id == site_run_id, meant)
        .order_by(HarvestLog.document_id, HarvestLog.revision)
    )
    rows = session.execute(query).all()
    findings = findings_under(session, [row.harvest_log_id for row in rows if row.outcome in _FAILING])
    for log_id, document_id, revision, outcome, message in rows:
        found = sorted(findings.get(log_id, ()), key=lambda finding: finding.level != "error")
        first = (found[0].rule, found[0].message, found[0].line) if found else (None, message, None)
        yield _End(docid(document_id, revision), document_id, revision, outcome, *first)


def _done(session: Session, site_run_ids: Sequence[int]) -> list[ChangedDocument]:
    """The documents that were inserted, updated or deleted in these site runs, in order, each once.

    A rehearsal counts for documents that were not changed in any real run.
    """
    query = (
        select(*columns(HarvestLog, "document_id revision outcome message"))
        .where(HarvestLog.site_run_id.in_(site_run_ids), HarvestLog.outcome.in_(_DONE))
        .order_by(HarvestLog.harvest_log_id)
    )
    done: dict[tuple[str, int, str], None] = {}
    rehearsed: dict[tuple[str, int, str], None] = {}
    for document_id, revision, outcome, message in session.execute(query):
        (rehearsed if would_be(outcome, message) else done)[document_id, revision, outcome] = None
    taken = {key[:2] for key in done}
    return [
        ChangedDocument(
            change=outcome,
            docid=docid(document_id, revision),
            document_id=document_id,
            revision=revision,
            outcome=outcome,
        )
        for document_id, revision, outcome in (*(key for key in rehearsed if key[:2] not in taken), *done)
    ]


def _require_log(session: Session, run_id: int) -> None:
    """Raises MetaharvestError if the log of this run was deleted."""
    if session.scalar(select(HarvestLog.run_id).where(HarvestLog.run_id == run_id).limit(1)) is None:
        raise MetaharvestError(
            f"The log of the run {run_id} has been deleted ([harvester] log_period_days), so what it did to each "
            f"document is not known any more; {todo('runs.show', run_id=run_id)} has its totals."
        )
