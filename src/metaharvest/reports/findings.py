"""Groups a site run's findings by rule, each group with its number and its first few lines, as the reports show them.

Only these are read, so that a site with a million documents costs no more than one with a hundred.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import date

from sqlalchemy import ColumnElement, and_, case, exists, func, select, true
from sqlalchemy.orm import Session, aliased

from metaharvest.database.models import HarvestDetailLog, HarvestDocument, HarvestLog, SiteProblem
from metaharvest.database.statements import by_document, without_index
from metaharvest.ledger.entries import nights
from metaharvest.model import ATTENTION_OUTCOMES, ERROR_OUTCOMES, Level, OutcomeKind
from metaharvest.model.values import frozen
from metaharvest.problems.attention import IS_ATTENTION
from metaharvest.reports.phrasing import OUTCOME_TITLES, docid_of, without_commands
from metaharvest.rules import RULES, TRACEBACK_RULE, title_of
from metaharvest.text import clean, counted, one_line, shown_url

MAX_MESSAGE = 800
"""Characters of a message or remedy that a mail shows; the attached table has all of them."""

MAX_TITLE = 120
"""Characters of a document's title that a mail shows."""

_LOG, _DETAIL, _LEDGER, _PROBLEM = HarvestLog, HarvestDetailLog, HarvestDocument, SiteProblem
_SAME_DOCUMENT = and_(
    _LEDGER.site_schedule_id == _LOG.site_schedule_id,
    _LEDGER.document_id == _LOG.document_id,
    _LEDGER.revision == _LOG.revision,
)
ITS_ENTRY = and_(_SAME_DOCUMENT, func.coalesce(_LOG.outcome, "") != OutcomeKind.DUPLICATE.value)
"""Joins log rows to the ledger: the failing entry is the first one, not its duplicate."""

NOT_FINE = [kind.value for kind in (*ERROR_OUTCOMES, *ATTENTION_OUTCOMES)]


@frozen
class FindingLine:
    """One finding, as shown. `since` is the first day on which the document failed, `title` is the document's."""

    docid: str
    url: str
    place: str
    excerpt: str
    message: str
    remedy: str
    since: str = ""
    title: str = ""


@frozen
class FindingGroup:
    """The findings of one rule: their number, the first of them, and the remedy and message that they share."""

    rule: str
    title: str
    grave: bool
    count: int
    lines: tuple[FindingLine, ...]
    remedy: str = ""
    message: str = ""

    @property
    def named_rule(self) -> str:
        """The id of the rule, to be shown below the heading; empty for documents that no finding explains."""
        return self.rule if self.rule in RULES else ""

    @property
    def more(self) -> int:
        """The number of findings that are not shown."""
        return self.count - len(self.lines) if self.lines else 0


def attention(
    session: Session, site_run_id: int, today: date, limit: int, news: bool | None = None
) -> tuple[FindingGroup, ...]:
    """The problems that need a correction or a decision, the gravest first; at most `limit` lines a group.

    `news`: only those that this site run was the first to find, or only those that it has found again.
    """
    explained = _groups(session, site_run_id, and_(IS_ATTENTION, _is_news(site_run_id, news)), today, limit)
    return (*explained, *_unexplained(session, site_run_id, today, limit, news))


def already_reported(reason: str, groups: Iterable[FindingGroup]) -> bool:
    """True if one of the findings shown already says this `reason`."""
    return any(line.message and line.message in reason for group in groups for line in group.lines)


def warnings(
    session: Session, site_run_id: int, today: date, limit: int, news: bool | None = None
) -> tuple[FindingGroup, ...]:
    """Warnings about documents that went in; at most `limit` lines a group. `news`: as above."""
    return tuple(_groups(session, site_run_id, and_(~IS_ATTENTION, _is_news(site_run_id, news)), today, limit))


def _is_news(site_run_id: int, news: bool | None) -> ColumnElement[bool]:
    """True if this site run was the first to find the problem of a detail row, if `news` is set."""
    if news is None:
        return true()
    problem = aliased(_PROBLEM)
    known = exists().where(
        problem.site_schedule_id == _LOG.site_schedule_id,
        problem.fingerprint == _DETAIL.fingerprint,
        problem.first_site_run < site_run_id,
    )
    return ~known if news else known


def _groups(
    session: Session, site_run_id: int, which: ColumnElement[bool], today: date, limit: int
) -> Iterator[FindingGroup]:
    graves = func.sum(case((_DETAIL.level == Level.ERROR.value, 1), else_=0))
    about_list = func.sum(case((_LOG.document_id.is_(None), 1), else_=0))
    query = (
        select(_DETAIL.rule, func.count(), graves, about_list)
        .join(_LOG, _LOG.harvest_log_id == _DETAIL.harvest_log_id)
        .where(_LOG.site_run_id == site_run_id, which)
        .group_by(_DETAIL.rule)
    )
    rows = [(rule, int(count), int(grave), int(listed)) for rule, count, grave, listed in session.execute(query)]
    for rule, count, grave, _ in sorted(rows, key=lambda row: (row[2] == 0, row[3] == 0, -row[1], row[0])):
        of_rule = without_index(_DETAIL.rule) == rule  # the index has the findings of all nights
        lines = tuple(_lines(session, site_run_id, and_(which, of_rule), today, limit))
        group = FindingGroup(rule, title_of(rule), grave > 0, count, lines)
        yield with_shared("remedy", group) if len(lines) > 1 else group


def _lines(
    session: Session, site_run_id: int, which: ColumnElement[bool], today: date, limit: int
) -> Iterator[FindingLine]:
    its_problem = and_(_PROBLEM.site_schedule_id == _LOG.site_schedule_id, _PROBLEM.fingerprint == _DETAIL.fingerprint)
    query = (
        select(_LOG, _DETAIL, _LEDGER.failing_since, _LEDGER.attempts, _LEDGER.title, _PROBLEM.first_seen)
        .join(_DETAIL, _DETAIL.harvest_log_id == _LOG.harvest_log_id)
        .outerjoin(_LEDGER, ITS_ENTRY)
        .outerjoin(_PROBLEM, its_problem)
        .where(_LOG.site_run_id == site_run_id, which)
        .order_by(_LOG.document_id.is_not(None), *by_document(_LOG.document_id), _LOG.revision, _DETAIL.detail_log_id)
        .limit(limit)
    )
    for log, detail, since, attempts, title, first_seen in session.execute(query):
        tried = f", {counted(attempts, 'attempt')}" if attempts else ""
        failing = since_when(since, today)
        when = f"failing {failing}{tried}" if failing else since_when(first_seen, today)
        yield finding_line(log, detail, when, title or "")


def finding_line(log: HarvestLog, detail: HarvestDetailLog, since: str = "", title: str = "") -> FindingLine:
    """One detail row, and the log row it belongs to, as shown."""
    docid = docid_of(log.document_id, log.revision) or docid_of(detail.document_id, detail.revision)
    return FindingLine(
        docid=one_line(docid),
        url=shown_url(log.document_url or detail.document_url or ""),
        place=_place(detail),
        excerpt="" if detail.rule == TRACEBACK_RULE else _excerpt(detail.excerpt or ""),
        message=one_line(detail.error_message, MAX_MESSAGE),
        remedy=one_line(detail.remedy or "", MAX_MESSAGE),
        since=since,
        title=one_line(title, MAX_TITLE),
    )


def _place(detail: HarvestDetailLog) -> str:
    line = f"line {detail.line_number:,}" if detail.line_number else ""
    return ", ".join(part for part in (line, one_line(detail.xpath or "", 200)) if part)


def _excerpt(text: str) -> str:
    """The first lines of an excerpt, long ones cut."""
    lines = [line.rstrip() for line in clean(text).expandtabs(2).split("\n") if line.strip()]
    return "\n".join(one if len(one) <= 300 else one[:299] + "…" for one in lines[:8])


def for_contacts(groups: Iterable[FindingGroup]) -> tuple[FindingGroup, ...]:
    """The groups in the words for a site's contacts, without the actions that only the administrator can carry out."""
    return tuple(map(_for_contacts, groups))


def _for_contacts(group: FindingGroup) -> FindingGroup:
    rule = RULES.get(group.rule)
    if rule is None or not rule.for_contact:
        lines = tuple(replace(line, remedy=without_commands(line.remedy)) for line in group.lines)
        return replace(group, lines=lines, remedy=without_commands(group.remedy))
    lines = tuple(replace(line, remedy="") for line in group.lines)
    if rule.is_ours:
        lines = tuple(replace(line, place="", excerpt="", message="") for line in lines)
        lines = tuple(line for line in lines if line.docid or line.url)
    return replace(group, lines=lines, remedy=rule.for_contact)


def since_when(since: date | None, today: date) -> str:
    """`since 2026-11-20, 2 nights`; empty for a problem of today, or without a day."""
    return f"since {since.isoformat()}, {counted(nights(since, today), 'night')}" if since and since < today else ""


def with_shared(name: str, group: FindingGroup) -> FindingGroup:
    """The text of this name once for the group instead of in each line, if all its lines have the same."""
    texts = {getattr(line, name) for line in group.lines}
    if len(texts) != 1:
        return group
    lines = tuple(replace(line, **{name: ""}) for line in group.lines)
    return replace(group, lines=lines, **{name: texts.pop()})


def _unexplained(
    session: Session, site_run_id: int, today: date, limit: int, news: bool | None
) -> Iterator[FindingGroup]:
    """Documents that are not fine and have no finding of their own, by outcome, with the log's message for each."""
    no_finding = ~select(_DETAIL.detail_log_id).where(_DETAIL.harvest_log_id == _LOG.harvest_log_id).exists()
    failed_before = exists().where(_SAME_DOCUMENT, _LEDGER.failing_since < today)
    age = true() if news is None else ~failed_before if news else failed_before
    here = and_(_LOG.site_run_id == site_run_id, _LOG.outcome.in_(NOT_FINE), no_finding, age)
    query = select(_LOG.outcome, func.count()).where(here).group_by(_LOG.outcome).order_by(func.count().desc())
    for value, count in session.execute(query).all():
        rows = select(_LOG).where(here, _LOG.outcome == value).limit(limit)
        rows = rows.order_by(*by_document(_LOG.document_id), _LOG.revision)
        kind, lines = OutcomeKind(str(value)), tuple(map(_plain_line, session.scalars(rows)))
        if kind is OutcomeKind.DEFERRED:
            # The heading says as much; why they were put off is a finding of its own.
            lines = tuple(replace(line, message="") for line in lines)
        group = FindingGroup(kind.value, OUTCOME_TITLES[kind], kind.is_error, count, lines)
        yield with_shared("message", group)


def _plain_line(row: HarvestLog) -> FindingLine:
    docid = one_line(docid_of(row.document_id, row.revision))
    return FindingLine(docid, shown_url(row.document_url or ""), "", "", one_line(row.message, MAX_MESSAGE), "")
