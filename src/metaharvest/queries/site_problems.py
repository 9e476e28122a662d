"""The open problems of one site, worst first, each with its document as a person knows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from sqlalchemy import ColumnElement, and_, case, func, or_, select
from sqlalchemy.orm import Session

from metaharvest.database.models import HarvestDetailLog, HarvestDocument, SiteProblem
from metaharvest.model.mappings import record_of
from metaharvest.problems.follow import OPEN
from metaharvest.queries.records import columns
from metaharvest.rules import RULES

_PROBLEM = "site_problem_id document_id rule needs_attention detail_log_id first_seen last_seen nights"
_number = SiteProblem.site_problem_id
_place = case((SiteProblem.needs_attention, 0), else_=1)
_IS_OPEN: ColumnElement[bool] = SiteProblem.state == OPEN


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteProblemRecord:
    """An open problem of a site; `document_id` is None if it is about the list, or the site.

    `message` to `excerpt` are from its last finding, as far as the log goes back.
    """

    problem_id: int
    document_id: str | None
    title: str | None
    rule: str
    rule_title: str
    needs_attention: bool
    first_seen: date
    last_seen: date
    nights: int
    message: str | None
    remedy: str | None
    line: int | None
    excerpt: str | None


@dataclass(frozen=True, slots=True)
class SiteProblemNumbers:
    """The numbers of open problems of a site: the problems that keep something out, and the others."""

    attention: int
    doubtful: int


def site_problem_numbers(session: Session, site_id: int) -> SiteProblemNumbers:
    """The numbers of open problems of this site."""
    query = select(SiteProblem.needs_attention, func.count()).where(SiteProblem.site_schedule_id == site_id, _IS_OPEN)
    numbers = {bool(needs): number for needs, number in session.execute(query.group_by(SiteProblem.needs_attention))}
    return SiteProblemNumbers(numbers.get(True, 0), numbers.get(False, 0))


def site_problems(session: Session, site_id: int, limit: int = 50, after: int | None = None) -> list[SiteProblemRecord]:
    """The open problems of this site. Problems that keep something out come first, then the oldest.

    `after`: the `problem_id` of the last one of a page. If that problem is gone, the list begins again.
    """
    conditions: list[ColumnElement[bool]] = [SiteProblem.site_schedule_id == site_id, _IS_OPEN]
    order = (_place, SiteProblem.first_seen, _number)
    last = None
    if after is not None:
        last = session.execute(select(_place, SiteProblem.first_seen).where(_number == after, *conditions)).first()
    if last is not None:
        worst, first_seen = last
        later = or_(SiteProblem.first_seen > first_seen, and_(SiteProblem.first_seen == first_seen, _number > after))
        conditions.append(or_(_place > worst, and_(_place == worst, later)))
    # The numbers first: a database may look up a title for each row that it sorts.
    numbers = session.scalars(select(_number).where(*conditions).order_by(*order).limit(limit)).all()
    return _records(session, site_id, numbers)


def _records(session: Session, site_id: int, numbers: Sequence[int]) -> list[SiteProblemRecord]:
    ledger, detail = HarvestDocument, HarvestDetailLog
    title = (
        select(func.max(ledger.title))
        .where(ledger.site_schedule_id == site_id, ledger.document_id == SiteProblem.document_id)
        .scalar_subquery()
    )
    query = (
        select(
            *columns(SiteProblem, _PROBLEM),
            title.label("title"),
            detail.error_message.label("message"),
            detail.remedy,
            detail.line_number.label("line"),
            detail.excerpt,
        )
        .outerjoin(detail, detail.detail_log_id == SiteProblem.detail_log_id)
        .where(_number.in_(numbers))
    )
    found = {row.site_problem_id: row for row in session.execute(query)}
    return [
        record_of(
            SiteProblemRecord,
            row,
            problem_id=row.site_problem_id,
            rule_title=RULES[row.rule].title if row.rule in RULES else row.rule,
        )
        for row in (found[number] for number in numbers if number in found)
    ]
