"""The findings of the last harvest of documents: the reasons for their state in the ledger."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from sqlalchemy import Select, func, or_, select, true
from sqlalchemy.orm import Session, aliased

from metaharvest.database.models import IS_REAL, HarvestDetailLog, HarvestLog, HarvestSiteRun, SiteProblem
from metaharvest.model import OutcomeKind, SiteRunStatus
from metaharvest.problems.attention import MANY_DELETIONS
from metaharvest.problems.follow import GONE, OPEN
from metaharvest.queries.records import FINDING, StoredFinding, columns, stored_finding

Key = tuple[int, str, int]
"""The number of a site, a document id and a revision."""

_SHARED = aliased(HarvestLog)

DOCUMENTS_AT_ONCE = 500
GOOD = (OutcomeKind.INSERTED.value, OutcomeKind.UPDATED.value, OutcomeKind.UNCHANGED.value)


@dataclass(frozen=True, slots=True)
class LastOutcome:
    """The last outcome of a document in the log, with its run and its findings, errors first."""

    site_run_id: int
    run_id: int
    harvest_date: date
    outcome: str
    message: str
    findings: tuple[StoredFinding, ...] = ()

    def explains(self, outcome: str | None) -> bool:
        """True if it matches the outcome in the ledger. The log has no row for an unchanged document."""
        return outcome == self.outcome or (outcome in GOOD and self.outcome in GOOD)


def last_outcomes(session: Session, document_ids: Iterable[str]) -> dict[Key, LastOutcome]:
    """The last outcome of each of these documents (at most DOCUMENTS_AT_ONCE) at each site that lists it."""
    log, site = HarvestLog, HarvestSiteRun.site_schedule_id
    with_site_run = HarvestSiteRun.site_run_id == log.site_run_id
    newest = (
        select(func.max(log.harvest_log_id))
        .join(HarvestSiteRun, with_site_run)
        .where(
            log.document_id.in_(list(dict.fromkeys(document_ids))),
            log.outcome.is_not(None),
            log.outcome != OutcomeKind.DUPLICATE.value,
            IS_REAL,
        )
        .group_by(site, log.document_id, log.revision)
    )
    numbers = list(session.scalars(newest))
    rows = select(site, *columns(log, "document_id revision site_run_id run_id harvest_date outcome message"))
    rows = rows.join(HarvestSiteRun, with_site_run)
    chosen = session.execute(rows.where(log.harvest_log_id.in_(numbers))).all() if numbers else []
    last = {(row[0], row[1], row[2]): LastOutcome(*row[3:]) for row in chosen}
    found = _findings(session, last)
    return {key: replace(each, findings=tuple(found.get(key, ()))) for key, each in last.items()}


def documents_with(session: Session, rule: str) -> dict[int, list[str]]:
    """The documents whose last findings may be of this rule, by site: all that have such a finding, and some others.

    Most findings are problems. The log is read only for the others: findings that no night repeats, the common reason
    of documents that were put off, which counts for each of them, and findings of site runs that are not closed yet.
    """
    log, detail, shared, problem = HarvestLog, HarvestDetailLog, _SHARED, SiteProblem
    # A problem that ended without a repair may still be the last finding, for instance of an old revision.
    problems = select(problem.site_schedule_id, problem.document_id).where(
        problem.state.in_((OPEN, GONE)), problem.rule == rule, problem.document_id.is_not(None)
    )
    # Few site runs have these states, and an index has the states.
    newest_not_closed = (
        select(func.max(HarvestSiteRun.site_run_id))
        .where(HarvestSiteRun.status.in_([SiteRunStatus.RUNNING.value, SiteRunStatus.INTERRUPTED.value]))
        .group_by(HarvestSiteRun.site_schedule_id, HarvestSiteRun.status)
    )
    not_closed = session.scalars(newest_not_closed).all()
    own = (
        select(log.site_schedule_id, log.document_id)
        .join(detail, detail.harvest_log_id == log.harvest_log_id)
        .where(
            detail.rule == rule,
            log.document_id.is_not(None),
            log.site_run_id.is_not(None),
        )
    )
    put_off = (
        select(log.site_schedule_id, log.document_id)
        .join(shared, shared.site_run_id == log.site_run_id)
        .join(detail, detail.harvest_log_id == shared.harvest_log_id)
        .where(
            detail.rule == rule,
            true() if rule == MANY_DELETIONS else detail.fingerprint.is_(None),
            shared.document_id.is_(None),
            shared.harvest_operation_code == "DocDeferred",
            log.outcome == OutcomeKind.DEFERRED.value,
        )
    )
    without_problem = select(detail.detail_log_id).where(detail.rule == rule, detail.fingerprint.is_(None)).limit(1)
    has_others = session.scalar(without_problem) is not None
    queries: list[Select[*tuple[Any, ...]]] = [problems]
    if has_others:
        queries.append(own.where(detail.fingerprint.is_(None)))
    if not_closed:
        queries.append(own.where(log.site_run_id.in_(not_closed)))
    if has_others or rule == MANY_DELETIONS:
        queries.append(put_off)
    found: dict[int, set[str]] = {}
    for query in queries:
        for site_id, document_id in session.execute(query.distinct()):
            if site_id is not None and document_id is not None:
                found.setdefault(site_id, set()).add(document_id)
    return {site_id: sorted(documents) for site_id, documents in found.items()}


def _findings(session: Session, last: Mapping[Key, LastOutcome]) -> dict[Key, list[StoredFinding]]:
    """The findings of these outcomes, errors first; for documents that were put off, the common reason."""
    if not last:
        return {}
    log, detail = HarvestLog, HarvestDetailLog
    query = (
        select(HarvestSiteRun.site_schedule_id, *columns(log, "document_id revision site_run_id"), *FINDING)
        .join(HarvestSiteRun, HarvestSiteRun.site_run_id == log.site_run_id)
        .join(detail, detail.harvest_log_id == log.harvest_log_id)
        .where(
            log.site_run_id.in_({each.site_run_id for each in last.values()}),
            log.document_id.in_({document_id for _, document_id, _ in last}),
            or_(log.outcome != OutcomeKind.DUPLICATE.value, log.outcome.is_(None)),
        )
        .order_by(detail.detail_log_id)
    )
    found: dict[Key, list[StoredFinding]] = {}
    for site_id, document_id, revision, site_run_id, *finding in session.execute(query):
        key = (site_id, document_id, revision)
        if (each := last.get(key)) and each.site_run_id == site_run_id:
            found.setdefault(key, []).append(stored_finding(finding))
    put_off = {
        key: each.site_run_id
        for key, each in last.items()
        if each.outcome == OutcomeKind.DEFERRED.value and key not in found
    }
    reasons = reasons_put_off(session, set(put_off.values()))
    found |= {key: reasons.get(site_run_id, []) for key, site_run_id in put_off.items()}
    return {key: sorted(records, key=lambda record: record.level != "error") for key, records in found.items()}


def reasons_put_off(session: Session, site_run_ids: Collection[int]) -> dict[int, list[StoredFinding]]:
    """The common reasons why documents of these site runs were put off."""
    if not site_run_ids:
        return {}
    log, detail = HarvestLog, HarvestDetailLog
    query = (
        select(log.site_run_id, *FINDING)
        .join(detail, detail.harvest_log_id == log.harvest_log_id)
        .where(
            log.site_run_id.in_(site_run_ids),
            log.document_id.is_(None),
            log.harvest_operation_code == "DocDeferred",
        )
        .order_by(detail.detail_log_id)
    )
    found: dict[int, list[StoredFinding]] = {}
    for site_run_id, *finding in session.execute(query):
        found.setdefault(site_run_id or 0, []).append(stored_finding(finding))
    return found
