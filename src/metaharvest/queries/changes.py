"""The differences between two runs, site by site: the state of each site after the one, and after the other.

The state of a site after a run is its last harvest up to that run, with the later retries: so a site that was not due
in one of the runs has a state, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from metaharvest.database.models import HarvestDetailLog, HarvestLog, HarvestSiteRun
from metaharvest.errors import MetaharvestError
from metaharvest.model import ERROR_OUTCOMES, OutcomeKind, SiteRunKind
from metaharvest.queries.records import Record, columns, docid, records_under, would_be
from metaharvest.queries.runs import run_record, site_number
from metaharvest.queries.sites import last_names
from metaharvest.queries.trends import READ_A_LIST, failing, harvest

CHANGES = ("newly_failing", "still_failing", "fixed", "inserted", "updated", "deleted")

_DONE = (OutcomeKind.INSERTED.value, OutcomeKind.UPDATED.value, OutcomeKind.DELETED.value)
_FAILING = tuple(kind.value for kind in (*ERROR_OUTCOMES, OutcomeKind.DEFERRED))
_RUN = ("run_id", "harvest_date", "status")
_NO_FINDING: Record = {"rule": None, "message": None, "line": None}
_SITE_RUN = "site_run_id run_id kind status deferred access_error invalid upload_error"

Documents = Mapping[str, Record]
"""By document id."""


def changes(session: Session, first: int, second: int, site: str | None = None) -> Record:
    """The differences from the run `first` to the run `second`, which is later; of one site, if it is named.

    For each site that was harvested after `first`, up to `second`: the results of its last harvest `before` and
    `after`, and its `documents` that changed or are failing, each with its `change`, one of CHANGES. Raises
    MetaharvestError for runs that are not there, and for those whose log was deleted.
    """
    if first >= second:
        raise MetaharvestError(f"Name the earlier run first: the run {second} is not later than the run {first}.")
    before, after = run_record(session, first).run, run_record(session, second).run
    for run_id in (first, second):
        _require_log(session, run_id)
    number = None if site is None else site_number(session, site)
    names = last_names(session)
    between = (HarvestSiteRun.run_id > first, HarvestSiteRun.run_id <= second)
    site_ids = session.scalars(select(HarvestSiteRun.site_schedule_id).where(*between).distinct()).all()
    found = [
        {"site": names.get(each), "site_id": each, **_of_site(session, each, first, second)}
        for each in site_ids
        if number in (None, each)
    ]
    return {
        "before": {name: before[name] for name in _RUN},
        "after": {name: after[name] for name in _RUN},
        "totals": {change: sum(each["totals"][change] for each in found) for change in CHANGES},
        "sites": sorted(found, key=lambda each: (str(each["site"]).lower(), each["site_id"])),
    }


@dataclass(frozen=True, slots=True)
class _Standing:
    """The state of a site after a run: its last harvest, and the failing documents, by document id.

    `log_kept`: the log still names these. The number `failing` in `last` is their number, also if the last harvest
    could not read the list, and if some were tried again since.
    """

    last: Record | None
    documents: Documents
    log_kept: bool


def _of_site(session: Session, site_id: int, first: int, second: int) -> Record:
    query = select(*columns(HarvestSiteRun, _SITE_RUN)).where(
        HarvestSiteRun.site_schedule_id == site_id, HarvestSiteRun.run_id <= second
    )
    # By run: a site run that was resumed by a later run has that run's number, and its own from before.
    ordered = query.order_by(HarvestSiteRun.run_id, HarvestSiteRun.site_run_id)
    site_runs: list[Record] = [dict(row) for row in session.execute(ordered).mappings()]
    earlier = [each for each in site_runs if each["run_id"] <= first]
    before, after = _standing(session, earlier), _standing(session, site_runs)
    done = _done(session, [each["site_run_id"] for each in site_runs if each["run_id"] > first])
    documents = [*_failing(before.documents, after.documents), *_fixed(before.documents, after.documents, done)]
    documents += done
    return {
        "before": before.last,
        "after": after.last,
        "log_kept": before.log_kept and after.log_kept,
        "totals": {change: sum(each["change"] == change for each in documents) for change in CHANGES},
        "documents": sorted(documents, key=lambda each: CHANGES.index(each["change"])),
    }


def _failing(before: Documents, after: Documents) -> Iterator[Record]:
    for document_id, now in after.items():
        then = before.get(document_id)
        change = "newly_failing" if then is None else "still_failing"
        outcome, rule = (then["outcome"], then["rule"]) if then else (None, None)
        yield {"change": change, **now, "outcome_before": outcome, "rule_before": rule}


def _fixed(before: Documents, after: Documents, done: Sequence[Record]) -> Iterator[Record]:
    """Documents that no longer fail, with their new outcome: none if they are there already, or no longer listed."""
    by_id = {each["document_id"]: each for each in done}
    for document_id, then in before.items():
        if document_id not in after:
            now = by_id.get(document_id, {**then, "outcome": None})
            known = {name: now[name] for name in ("docid", "document_id", "revision", "outcome")}
            was = {"outcome_before": then["outcome"], "rule_before": then["rule"]}
            yield {"change": "fixed", **known, **_NO_FINDING, **was}


def _standing(session: Session, site_runs: Sequence[Record]) -> _Standing:
    """The state of the site after the last of these site runs."""

    def is_full(site_run: Record) -> bool:
        return bool(site_run["kind"] != SiteRunKind.RETRY.value)

    full = [each for each in site_runs if is_full(each)]
    last = harvest(session, full[-1]["site_run_id"]) if full else None
    documents: dict[str, Record] = {}
    number_lost, later = 0, site_runs
    if listings := [at for at, each in enumerate(site_runs) if is_full(each) and each["status"] in READ_A_LIST]:
        # A document in the list without an entry here was well; after a retry, every outcome counts.
        listing, *later = site_runs[listings[-1] :]
        documents = {each["document_id"]: each for each in _ends(session, listing["site_run_id"], only_failing=True)}
        number_lost = 0 if documents else failing(listing)
    for site_run in later:
        for each in _ends(session, site_run["site_run_id"]):
            documents.pop(each["document_id"], None)
            if each["outcome"] in _FAILING:
                documents[each["document_id"]] = each
    last = last and {**last, "failing": number_lost or len(documents)}
    return _Standing(last, dict(sorted(documents.items())), log_kept=not number_lost)


def _ends(session: Session, site_run_id: int, *, only_failing: bool = False) -> Iterable[Record]:
    """The outcomes of documents in a site run; of those with several revisions the highest is last."""
    meant = HarvestLog.outcome.in_(_FAILING) if only_failing else HarvestLog.outcome != OutcomeKind.DUPLICATE.value
    query = (
        select(*columns(HarvestLog, "harvest_log_id document_id revision outcome message"))
        .where(HarvestLog.site_run_id == site_run_id, meant)
        .order_by(HarvestLog.document_id, HarvestLog.revision)
    )
    rows = session.execute(query).all()
    failed = [row.harvest_log_id for row in rows if row.outcome in _FAILING]
    findings = records_under(session, HarvestDetailLog.harvest_log_id, failed, "level rule error_message line_number")
    for log_id, document_id, revision, outcome, message in rows:
        found = sorted(findings.get(log_id, ()), key=lambda finding: bool(finding["level"] != "error"))
        first = found[0] if found else {"rule": None, "error_message": message, "line_number": None}
        yield {
            "docid": docid(document_id, revision),
            "document_id": document_id,
            "revision": revision,
            "outcome": outcome,
            "rule": first["rule"],
            "message": first["error_message"],
            "line": first["line_number"],
        }


def _done(session: Session, site_run_ids: Sequence[int]) -> list[Record]:
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
    nothing = {**_NO_FINDING, "outcome_before": None, "rule_before": None}
    return [
        {
            "change": outcome,
            "docid": docid(document_id, revision),
            "document_id": document_id,
            "revision": revision,
            "outcome": outcome,
            **nothing,
        }
        for document_id, revision, outcome in (*(key for key in rehearsed if key[:2] not in taken), *done)
    ]


def _require_log(session: Session, run_id: int) -> None:
    """Raises MetaharvestError if the log of this run was deleted."""
    if session.scalar(select(HarvestLog.run_id).where(HarvestLog.run_id == run_id).limit(1)) is None:
        raise MetaharvestError(
            f"The log of the run {run_id} has been deleted ([harvester] log_period_days), so what it did to each "
            f"document is not known any more; `metaharvest runs show {run_id}` has its totals."
        )
