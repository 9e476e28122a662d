"""The content of the administrator's report, read from the journal: one frozen value, every text in it cleaned.

One row per site, failures first; then failures with reasons, trouble of the run itself, documents by site and rule, and
mail that did not arrive. The templates make the layout.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

from sqlalchemy import ColumnElement, distinct, func, or_, select
from sqlalchemy.orm import Session

from metaharvest import __version__
from metaharvest.config.report_context import ReportContext
from metaharvest.database.models import (
    IS_HARVEST,
    HarvestDetailLog,
    HarvestLog,
    HarvestRun,
    HarvestSiteRun,
    ReportDelivery,
    ReportOutbox,
)
from metaharvest.database.operations import PIPELINE_ERROR
from metaharvest.database.statements import rows_with
from metaharvest.mail.outbox import IS_REFUSED, stuck_mail
from metaharvest.model import (
    ATTENTION_OUTCOMES,
    ERROR_OUTCOMES,
    MAX_FINDINGS,
    NOT_HARVESTED,
    OutcomeKind,
    RunStatus,
    SiteRunKind,
    SiteRunStatus,
)
from metaharvest.model.actions import todo
from metaharvest.model.values import frozen
from metaharvest.problems.attention import CHANGED_CONTENT, IS_ATTENTION, MISSING, SHRANK, VANISHED
from metaharvest.reports import phrasing
from metaharvest.reports.findings import FindingGroup, FindingLine, already_reported, attention, finding_line
from metaharvest.reports.phrasing import View, counts_of, totals_of
from metaharvest.reports.pipeline_notes import PipelineNote, progress_note
from metaharvest.reports.problem_history import FailingSite, doubts, failing_sites, number_noted
from metaharvest.reports.start_here import Step, show_site, waiting_for_a_person
from metaharvest.rules import RULES, title_of
from metaharvest.sites.clock_checks import long_pause, wrong_clock
from metaharvest.sites.overdue import overdue_sites
from metaharvest.text import counted, joined, one_line

_LOG, _DETAIL = HarvestLog, HarvestDetailLog

_UNREACHABLE = frozenset({"http.dns", "http.connection", "http.timeout-connect", "http.proxy"})
"""Rules of failures before a server has answered. If all sites have them, our own network may be the cause."""

_OWN_NETWORK = Step(
    "No site could be reached.",
    "Check the network of the harvester's machine first: its name server, its firewall, http.proxy in the settings.",
)

_RUN_PAGE = "/console/runs/"
"""The page of a run in the console; its number follows."""


@frozen
class SiteRow:
    """One site in the table. `counts` has the number of documents by outcome; `details` those that are not fine."""

    name: str
    status: str
    tone: str
    listed: int
    counts: dict[str, int]
    attention: int
    errors: int
    details: str
    duration: str
    next_harvest: str


@frozen
class FailedSite:
    """A site that failed as a whole, with the reason. `told`: a finding of `groups` already says the reason."""

    name: str
    reason: str
    told: bool
    groups: tuple[FindingGroup, ...]


_ALSO = (VANISHED, CHANGED_CONTENT, MISSING)
"""Rules of warnings that administrators get as well."""


@frozen
class RuleProblem:
    """One rule's findings at one site: the number of documents, and the first finding as an example.

    `documents` is 0 if the finding itself has a number, or is about the list; then its remedy is shown.
    """

    site: str
    title: str
    rule: str
    documents: int
    example: FindingLine

    @property
    def is_for_administrator(self) -> bool:
        """True if its remedy is for the administrator, and hidden from the site's contacts."""
        return self.rule in RULES and bool(RULES[self.rule].for_contact)

    @property
    def counted(self) -> str:
        """The number of documents, in words; vanished ones are not all shown one by one."""
        more = " or more" if self.rule in (VANISHED, MISSING) and self.documents >= MAX_FINDINGS else ""
        return counted(self.documents, "document") + more if self.documents else ""


@frozen
class Undelivered:
    """A report that one recipient has not received."""

    recipient: str
    subject: str
    state: str
    attempts: int
    error: str
    since: str


@frozen(kw_only=True)
class AdminView(View):
    """The content of the administrator's report. `log_file` is the file with the whole report, if one was written.

    `page` is the address of the run in the console, empty if the settings have no `url`.

    `waits` are sentences about long waits (sites that are overdue, mail that does not leave, a long pause before the
    run), and about a clock that was wrong. `asked` are sentences about requests of people: harvests, stops, sites to
    leave out. `start_here`: the first steps; decisions that wait for a person come before all others.
    """

    start_here: tuple[Step, ...]
    sites: tuple[SiteRow, ...]
    failures: tuple[FailedSite, ...]
    troubles: tuple[str, ...]
    more_troubles: int
    problems: tuple[RuleProblem, ...]
    more_problems: int
    undelivered: tuple[Undelivered, ...]
    more_undelivered: int
    waits: tuple[str, ...]
    more_waits: int
    failing: tuple[FailingSite, ...]
    more_failing: int
    run: int
    version: str
    host: str
    target: str
    started: str
    duration: str
    administrators: tuple[str, ...]
    asked: tuple[str, ...]
    more_asked: int
    log_file: str = ""
    log_file_error: str = ""
    went_nowhere: str
    is_rehearsal: bool
    page: str
    pipeline: PipelineNote | None


def admin_view(session: Session, run: HarvestRun, context: ReportContext) -> AdminView:
    """Read the content of the report of this run."""
    limit, now, url = context.limit, context.now, context.settings.web.url
    site_runs = _site_runs(session, run.run_id)
    problems, more_problems = _problems(session, site_runs, limit)
    zone = context.settings.harvester.zone
    undelivered = _undelivered(session, run, zone)
    troubles, more_troubles = _troubles(session, run.run_id, limit)
    is_away = bool(_messages(session, run.run_id, "TargetError"))
    asked = _messages(session, run.run_id, "RequestTaken")
    overdue = overdue_sites(session, run.harvest_date)
    clock = tuple(wrong_clock(session, run.run_id, now, max(now.date(), run.harvest_date)))
    pause = tuple(_pause(session, run, context))
    waits = [*clock, *pause, *_stuck_mail(session, now, zone), *(site.sentence for site in overdue)]
    failures = tuple(_failed_sites(session, site_runs, run, limit))
    to_repair = {failure.name: _step(failure) for failure in failures}
    refused = session.scalar(select(func.count()).select_from(ReportDelivery).where(IS_REFUSED)) or 0
    person = waiting_for_a_person(session, refused, overdue, to_repair)
    if overdue:
        to_repair.pop(one_line(overdue[0].name), None)
    check = f"{todo('installation.check')} checks the settings, the database, the target and the mail."
    about_run = [Step(trouble, check) for trouble in troubles[:1]]
    are_unreachable = all(any(group.rule in _UNREACHABLE for group in failure.groups) for failure in failures)
    if len(failures) > 1 and are_unreachable and all(map(_got_nothing, site_runs)):
        about_run.append(_OWN_NETWORK)
    failing, more_failing = failing_sites(session, run.harvest_date, limit)
    status = context.run_status or RunStatus(run.status)
    statuses = phrasing.statuses_of_sites((row.site_schedule_id, row.status) for row in site_runs)
    counts = {kind: sum(getattr(row, kind.column) or 0 for row in site_runs) for kind in OutcomeKind}
    doubtful = {row.site_run_id: doubts(session, row) for row in site_runs}
    noted = number_noted(session, site_runs)
    is_grave = any(each.is_grave or each.target_lost for each in doubtful.values())
    facts = _Facts(status, statuses, counts, sum(row.listed for row in site_runs), troubles, is_away)
    names = [row.site_name for row in site_runs]
    listing = [row.site_name for row in site_runs if row.listed]
    nowhere_at_all = bool(listing) and not any(context.named_targets.of(name).keeps for name in listing)
    story = _story(facts, nowhere_at_all, list(doubtful.values()), noted)
    return AdminView(
        network=one_line(context.settings.harvester.name),
        date=run.harvest_date.isoformat(),
        story="; ".join(filter(None, (person.opening, story))),
        tone=_tone(facts, bool(troubles or undelivered or waits or is_grave or person.steps)),
        sentence=_sentence(facts, bool(undelivered), len(overdue), bool(clock), bool(pause)),
        start_here=(*person.steps, *about_run, *islice(to_repair.values(), 3)),
        totals=totals_of(facts.listed, counts, sum(row.warnings for row in site_runs), noted=noted),
        sites=tuple(_site_row(row, run, doubtful[row.site_run_id], now) for row in site_runs),
        failures=failures,
        troubles=troubles,
        more_troubles=more_troubles,
        problems=problems,
        more_problems=more_problems,
        undelivered=tuple(undelivered[:limit]),
        more_undelivered=max(0, len(undelivered) - limit),
        waits=tuple(one_line(wait, 1000) for wait in waits[:limit]),
        more_waits=max(0, len(waits) - limit),
        failing=failing,
        more_failing=more_failing,
        run=run.run_id,
        version=__version__,
        host=one_line(run.host),
        target=context.named_targets.describe(names),
        started=f"{run.started_at:%Y-%m-%d %H:%M:%S} UTC",
        duration=phrasing.duration(((run.ended_at or now) - run.started_at).total_seconds()),
        recipients=context.settings.harvester.administrators,
        administrators=context.settings.harvester.administrators,
        asked=asked[:limit],
        more_asked=max(0, len(asked) - limit),
        went_nowhere=context.named_targets.went_nowhere(listing),
        is_rehearsal=context.is_rehearsal,
        page=f"{url.rstrip('/')}{_RUN_PAGE}{run.run_id}" if url and not context.is_rehearsal else "",
        pipeline=None if context.is_rehearsal else progress_note(session, context.settings.pipeline, now, limit),
    )


def _pause(session: Session, run: HarvestRun, context: ReportContext) -> Iterator[str]:
    """A sentence if the run before was so long ago that the clock may be wrong."""
    is_by_the_clock = run.harvest_date == run.started_at.astimezone(context.settings.harvester.zone).date()
    if is_by_the_clock and (sentence := long_pause(session, run.run_id, run.harvest_date)):
        yield sentence


@frozen
class _Facts:
    """The facts about a run that its subject, its colour and its first sentence need. `is_away`: a target was away."""

    status: RunStatus
    statuses: Sequence[SiteRunStatus]
    counts: phrasing.Counts
    listed: int
    troubles: tuple[str, ...]
    is_away: bool


def _story(facts: _Facts, nowhere_at_all: bool, doubtful: Sequence[phrasing.Doubts], noted: int) -> str:
    if not facts.statuses and facts.troubles:
        return "no site was harvested"
    opening = {RunStatus.FAILED: "the run failed; ", RunStatus.INTERRUPTED: "the run was interrupted; "}
    away = "the repository did not answer; " if facts.is_away else ""
    story = phrasing.run_story(facts.statuses, facts.counts, nowhere_at_all, doubtful, noted)
    return opening.get(facts.status, "") + away + story


def _tone(facts: _Facts, trouble: bool) -> str:
    ended_badly = facts.status in (RunStatus.FAILED, RunStatus.INTERRUPTED)
    if ended_badly or any(each in NOT_HARVESTED for each in facts.statuses):
        return "bad"
    doubtful = trouble or phrasing.total(facts.counts, (*ERROR_OUTCOMES, *ATTENTION_OUTCOMES))
    return "doubtful" if doubtful or SiteRunStatus.WITH_ERRORS in facts.statuses else "good"


def _sentence(facts: _Facts, undelivered: bool, overdue: int, clock: bool, pause: bool) -> str:
    statuses, troubles = facts.statuses, facts.troubles
    if not statuses:
        opening = "No site was harvested." if troubles else "No site was due."
    else:
        errors = phrasing.total(facts.counts, ERROR_OUTCOMES)
        later = phrasing.total(facts.counts, [OutcomeKind.DEFERRED])
        badly = [f"{counted(errors, 'document was', 'documents were')} not accepted"] if errors else []
        badly += [f"{counted(later, 'was', 'were')} put off to a later run"] if later else []
        ended = f"; {joined(badly)}" if badly else ""
        names = "names" if len(statuses) == 1 else "name"
        opening = f"{counted(len(statuses), 'site')} {names} {counted(facts.listed, 'document')}{ended}."
    failed = sum(status in NOT_HARVESTED for status in statuses)
    others = failed or overdue or facts.is_away or troubles or undelivered
    # In a list of problems, a comma would divide the sentence about the clock.
    wrong_clock = "the clock is or was wrong" if others else "the clock was wrong, or is"
    parts = [
        f"{counted(failed, 'site')} failed as a whole" if failed else "",
        f"{counted(overdue, 'site is', 'sites are')} overdue" if overdue else "",
        wrong_clock if clock else "the run before was long ago" if pause else "",
        "the repository stopped answering" if facts.is_away else "",
        "the run itself had trouble" if troubles and not facts.is_away else "",
        "some mail did not arrive" if undelivered else "",
    ]
    summary = joined([part for part in parts if part])
    return f"{opening} {summary[:1].upper()}{summary[1:]}: see below." if summary else opening


def _site_runs(session: Session, run_id: int) -> list[HarvestSiteRun]:
    """The site runs of this run, and earlier ones that it resumed; the gravest first, then by name."""
    own = session.scalars(select(HarvestSiteRun.site_run_id).where(HarvestSiteRun.run_id == run_id))
    # One statement for both would read all site runs on PostgreSQL.
    logged = select(_LOG.site_run_id).where(_LOG.run_id == run_id, _LOG.site_run_id.is_not(None)).distinct()
    numbers = {*own, *session.scalars(logged)}
    rows = [row for [row] in rows_with(session, select(HarvestSiteRun), HarvestSiteRun.site_run_id, sorted(numbers))]
    return sorted(rows, key=lambda row: (phrasing.GRAVITY.index(SiteRunStatus(row.status)), row.site_name.casefold()))


def _site_row(row: HarvestSiteRun, run: HarvestRun, doubtful: phrasing.Doubts, now: datetime) -> SiteRow:
    """A site run as the table shows it: its time in this run, until now if it has not ended."""
    status, counts = SiteRunStatus(row.status), counts_of(row)
    began = max(row.started_at, run.started_at)
    odd = [
        f"{counts[kind]:,} {phrasing.LABELS[kind]}" for kind in (*phrasing.ERRORS, *ATTENTION_OUTCOMES) if counts[kind]
    ]
    odd += doubtful.in_words
    odd += [counted(row.warnings, "warning")] if row.warnings else []
    retry = "retry, " if row.kind == SiteRunKind.RETRY.value else ""
    return SiteRow(
        name=one_line(row.site_name),
        status=retry + phrasing.STATUSES[status],
        tone=phrasing.site_tone(status, counts, doubtful),
        listed=row.listed,
        counts={kind.column: number for kind, number in counts.items()},
        attention=phrasing.total(counts, ATTENTION_OUTCOMES),
        errors=phrasing.total(counts, ERROR_OUTCOMES),
        details=", ".join(odd),
        duration=phrasing.duration(((row.ended_at or now) - began).total_seconds()),
        next_harvest=row.next_harvest.isoformat() if row.next_harvest else "",
    )


def _failed_sites(
    session: Session, site_runs: list[HarvestSiteRun], run: HarvestRun, limit: int
) -> Iterator[FailedSite]:
    """The sites that failed as a whole, each with its reason and its gravest findings."""
    for row in site_runs:
        if SiteRunStatus(row.status) not in NOT_HARVESTED:
            continue
        groups = attention(session, row.site_run_id, run.harvest_date, min(limit, 5))
        known = row.failure_reason or _site_message(session, row) or phrasing.STATUSES[SiteRunStatus(row.status)]
        reason = one_line(known, 1000)
        yield FailedSite(one_line(row.site_name), reason, already_reported(reason, groups), groups)


def _site_message(session: Session, site_run: HarvestSiteRun) -> str | None:
    """The first error in the log about the site itself, not about one of its documents."""
    its_own = (_LOG.site_run_id == site_run.site_run_id) & (_LOG.status == 1) & _LOG.document_id.is_(None)
    return session.scalar(select(_LOG.message).where(its_own).order_by(_LOG.harvest_log_id).limit(1))


def _troubles(session: Session, run_id: int, limit: int) -> tuple[tuple[str, ...], int]:
    """Trouble of the run itself: dead runs found at the start, an early end, failures outside of a site.

    Returns the first sentences, and the number of the others.

    The report of a run is made before the pipeline runs: this one says if the pipeline failed after the last report.
    """
    since = _last_reported(session, run_id)
    before = select(HarvestRun.run_id).where(HarvestRun.run_id < run_id, HarvestRun.run_id >= since, IS_HARVEST)
    after_report = _is_of_run_itself(*session.scalars(before)) & (_LOG.harvest_operation_code == PIPELINE_ERROR)
    its = or_(after_report, _is_of_run_itself(run_id) & (_LOG.status == 1))
    first = select(_LOG.message).where(its).order_by(_LOG.harvest_log_id).limit(limit)
    troubles = tuple(one_line(message, 1000) for message in session.scalars(first))
    number = session.scalar(select(func.count()).select_from(_LOG).where(its)) or 0
    return troubles, number - len(troubles)


def _messages(session: Session, run_id: int, code: str) -> tuple[str, ...]:
    """The messages of the log about the run itself that have this operation code."""
    its = _is_of_run_itself(run_id) & (_LOG.harvest_operation_code == code)
    messages = session.scalars(select(_LOG.message).where(its).order_by(_LOG.harvest_log_id))
    return tuple(one_line(message, 1000) for message in messages)


def _is_of_run_itself(*run_ids: int) -> ColumnElement[bool]:
    """The condition for rows of these runs that are about none of their site runs: an index leads to these few."""
    return _LOG.run_id.in_(run_ids) & _LOG.site_run_id.is_(None)


def _last_reported(session: Session, run_id: int) -> int:
    """The last run before this one with a report to the administrators: a run that died may have none.

    If no run has one, the run before this one; 0 if there is none.
    """
    its_report = (ReportOutbox.run_id < run_id, ReportOutbox.site_run_id.is_(None), ReportOutbox.kind == "admin")
    before = select(func.max(HarvestRun.run_id)).where(HarvestRun.run_id < run_id, IS_HARVEST)
    return session.scalar(select(func.max(ReportOutbox.run_id)).where(*its_report)) or session.scalar(before) or 0


def _problems(session: Session, site_runs: list[HarvestSiteRun], limit: int) -> tuple[tuple[RuleProblem, ...], int]:
    """Problems by site and rule, the lists themselves first, of the sites that did not fail as a whole.

    It includes warnings about documents that the target keeps: they are no longer listed, or differ from the target's.
    """
    names = {row.site_run_id: one_line(row.site_name) for row in site_runs}
    numbers = [row.site_run_id for row in site_runs if row.status not in NOT_HARVESTED]
    documents = func.count(distinct(func.coalesce(_LOG.document_id, _DETAIL.document_id)))
    query = (
        select(_LOG.site_run_id, _DETAIL.rule, documents, func.min(_DETAIL.detail_log_id))
        .join(_DETAIL, _DETAIL.harvest_log_id == _LOG.harvest_log_id)
        .where(or_(IS_ATTENTION, _DETAIL.rule.in_(_ALSO)))
        .group_by(_LOG.site_run_id, _DETAIL.rule)
    )
    found = ((names.get(row[0] or 0, ""), *row[1:]) for row in rows_with(session, query, _LOG.site_run_id, numbers))
    rows = sorted(found, key=lambda row: (row[0].casefold(), row[1] != SHRANK, -row[2], row[1]))
    shown = []
    for site, rule, number, first in rows[:limit]:
        detail = session.get_one(_DETAIL, first)
        example = finding_line(session.get_one(_LOG, detail.harvest_log_id), detail)
        shown.append(RuleProblem(site, title_of(rule), rule, number, example))
    return tuple(shown), len(rows) - len(shown)


def _got_nothing(row: HarvestSiteRun) -> bool:
    """True if the site failed as a whole, or if it was a retry without any of its documents."""
    not_fetched = row.access_error + row.deferred
    return row.status in NOT_HARVESTED or (row.kind == SiteRunKind.RETRY.value and not_fetched == row.listed)


def _step(failure: FailedSite) -> Step:
    """The next step about a site that failed as a whole: the remedy of the finding that its reason names."""
    lines = [(line, group) for group in failure.groups for line in group.lines]
    remedies = [line.remedy or group.remedy for line, group in lines] + [group.remedy for group in failure.groups]
    reason = failure.reason.removeprefix(failure.name + ": ")
    for line, group in lines:
        if (message := line.message or group.message) and message in reason:
            remedies.insert(0, line.remedy or group.remedy)
            if place := line.place.partition(", /")[0]:
                reason = reason.replace(message, f"{message.removesuffix('.')} ({place}).", 1)
            break
    return Step(f"{failure.name}: {reason}", next(filter(None, remedies), show_site(failure.name)))


def _undelivered(session: Session, run: HarvestRun, zone: ZoneInfo) -> list[Undelivered]:
    """Mail that waits after a failed attempt, and mail refused since the last run with a report (or in a day)."""
    reported = session.get(HarvestRun, _last_reported(session, run.run_id))
    since = reported.started_at if reported else run.started_at - timedelta(days=1)
    waiting = (ReportDelivery.status == "queued") & (ReportDelivery.attempts > 0)
    refused = (ReportDelivery.status == "refused") & (ReportDelivery.last_attempt_at >= since)
    query = (
        select(ReportDelivery, ReportOutbox.subject, ReportOutbox.created_at)
        .join(ReportOutbox, ReportOutbox.report_id == ReportDelivery.report_id)
        .where(or_(waiting, refused))
        .order_by(ReportDelivery.delivery_id)
    )
    return [
        Undelivered(
            recipient=one_line(delivery.recipient),
            subject=one_line(subject),
            state="refused" if delivery.status == "refused" else "waiting",
            attempts=delivery.attempts,
            error=one_line(delivery.last_error or "", 500),
            since=f"{created_at.astimezone(zone):%Y-%m-%d}",
        )
        for delivery, subject, created_at in session.execute(query)
    ]


def _stuck_mail(session: Session, now: datetime, zone: ZoneInfo) -> Iterator[str]:
    """A sentence if mail has waited in the outbox for too long."""
    stuck = stuck_mail(session, now)
    if stuck is not None:
        waits = counted(stuck.deliveries, "delivery has", "deliveries have")
        waited = f"{waits} waited for more than two days, the first since {stuck.since.astimezone(zone):%Y-%m-%d}"
        yield f"The outbox does not empty: {waited}. {todo('reports.undelivered')} says why."
