"""Open problems by rule, with their numbers over the last nights, and the documents of a rule by title."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta

from sqlalchemy import and_, func, or_, select
from sqlalchemy.orm import Session

from metaharvest.database.models import HarvestDetailLog, HarvestDocument, SiteProblem
from metaharvest.model.mappings import record_of
from metaharvest.problems.follow import OPEN
from metaharvest.queries.problems import RuleTotal, is_of_registered_site, open_problems
from metaharvest.queries.records import columns
from metaharvest.sites.registry import read_sites, read_sites_of

NIGHTS = 14


@dataclass(frozen=True, slots=True)
class RuleTrend:
    """A rule with its open problems; `trend` has the number of open problems at the end of each day, the oldest first.

    Problems of removed sites do not count.
    """

    total: RuleTotal
    trend: tuple[int, ...]


def rule_trends(session: Session, today: date) -> list[RuleTrend]:
    """The rules with open problems in the order of `open_problems`, with the last NIGHTS days up to today."""
    days = [today - timedelta(days=back) for back in reversed(range(NIGHTS))]
    problem = SiteProblem
    groups = (problem.rule, problem.first_seen, problem.ended_on)
    counted = select(*groups, func.count()).where(is_of_registered_site()).group_by(*groups)
    numbers: dict[str, list[int]] = {}
    # Two statements, as each has an index of its own.
    for condition in (problem.state == OPEN, problem.ended_on > days[0]):
        for rule, first, ended, number in session.execute(counted.where(condition)):
            of_rule = numbers.setdefault(rule, [0] * NIGHTS)
            for at, day in enumerate(days):
                of_rule[at] += number if first <= day and (ended is None or ended > day) else 0
    none = [0] * NIGHTS
    return [RuleTrend(total, tuple(numbers.get(total.rule, none))) for total in open_problems(session)]


@dataclass(frozen=True, slots=True)
class ProblemCursor:
    """The place of a problem in the list: the next page begins after it."""

    site_id: int
    problem_id: int


@dataclass(frozen=True, slots=True)
class ProblemDocument:
    """An open problem of a rule, with its document as a person knows it; `document_id` is None for a list.

    `message` is from its last finding, as far as the log goes back.
    """

    site: str
    site_id: int
    document_id: str | None
    title: str | None
    message: str | None
    line: int | None
    first_seen: date
    nights: int
    needs_attention: bool
    cursor: ProblemCursor


def documents_of_rule(
    session: Session, rule: str, *, site_id: int | None = None, limit: int = 100, after: ProblemCursor | None = None
) -> list[ProblemDocument]:
    """The open problems of a rule at registered sites, or at one, by site; the next page begins `after` the last."""
    problem, detail, ledger = SiteProblem, HarvestDetailLog, HarvestDocument
    sites = read_sites(session) if site_id is None else read_sites_of(session, [site_id]).values()
    names = {site.site_id: site.name for site in sites}
    conditions = [problem.state == OPEN, problem.rule == rule]
    if site_id is not None:
        conditions.append(problem.site_schedule_id == site_id)
    if after is not None:
        in_site = and_(problem.site_schedule_id == after.site_id, problem.site_problem_id > after.problem_id)
        conditions += [
            problem.site_schedule_id >= after.site_id,
            or_(problem.site_schedule_id > after.site_id, in_site),
        ]
    title = (
        select(func.max(ledger.title))
        .where(ledger.site_schedule_id == problem.site_schedule_id, ledger.document_id == problem.document_id)
        .scalar_subquery()
    )
    query = (
        select(
            *columns(problem, "site_problem_id site_schedule_id document_id first_seen nights needs_attention"),
            title.label("title"),
            detail.error_message.label("message"),
            detail.line_number.label("line"),
        )
        .outerjoin(detail, detail.detail_log_id == problem.detail_log_id)
        .where(*conditions, problem.site_schedule_id.in_(names))
        .order_by(problem.site_schedule_id, problem.site_problem_id)
        .limit(limit)
    )
    return [
        record_of(
            ProblemDocument,
            row,
            site=names[row.site_schedule_id],
            site_id=row.site_schedule_id,
            cursor=ProblemCursor(row.site_schedule_id, row.site_problem_id),
        )
        for row in session.execute(query)
    ]
