"""The open problems: by rule, with their numbers over the nights; the documents of a rule; a site, worst first."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Row, and_, case, distinct, func, or_, select
from sqlalchemy.orm import Session

from metaharvest.database.models import HarvestDetailLog, HarvestDocument, HarvestSiteSchedule, SiteProblem
from metaharvest.database.statements import without_index
from metaharvest.model.mappings import record_of
from metaharvest.model.values import frozen
from metaharvest.problems.follow import OPEN
from metaharvest.queries.records import columns, is_after
from metaharvest.queries.runs import site_number
from metaharvest.rules import title_of
from metaharvest.sites.registry import read_site, read_sites, read_sites_of

NIGHTS = 14

_number = SiteProblem.site_problem_id
_place = case((SiteProblem.needs_attention, 0), else_=1)
_IS_OPEN: ColumnElement[bool] = SiteProblem.state == OPEN
# With the index of sites, SQLite would read all problems, site by site.
IS_OF_REGISTERED_SITE = without_index(SiteProblem.site_schedule_id).in_(select(HarvestSiteSchedule.site_schedule_id))
"""True for the problems of sites that are registered now."""

_of_document = (
    HarvestDocument.site_schedule_id == SiteProblem.site_schedule_id,
    HarvestDocument.document_id == SiteProblem.document_id,
)
_PROBLEMS = select(
    *columns(
        SiteProblem, "site_problem_id site_schedule_id document_id rule needs_attention first_seen last_seen nights"
    ),
    select(func.max(HarvestDocument.title)).where(*_of_document).scalar_subquery().label("title"),
    HarvestDetailLog.error_message.label("message"),
    HarvestDetailLog.remedy,
    HarvestDetailLog.line_number.label("line"),
    HarvestDetailLog.excerpt,
).outerjoin(HarvestDetailLog, HarvestDetailLog.detail_log_id == SiteProblem.detail_log_id)
"""Problems, each with the title of its document, and with its last finding, as far as the log goes back."""


@frozen
class RuleTotal:
    """One rule with its open problems. `number_of_documents` counts each document once for its site, and no list.

    `needs_attention`: the problem keeps something out. `site` is the only site that has it; None if several have.
    """

    rule: str
    rule_title: str
    needs_attention: bool
    number_of_problems: int
    number_of_documents: int
    number_of_sites: int
    site: str | None
    first_seen: date


def open_problems(session: Session, site: str | None = None, rule: str | None = None) -> list[RuleTotal]:
    """The open problems of registered sites, or of one; those that need attention first, then by documents and sites.

    `rule`: only the problems of this rule. Raises MetaharvestError if there is no such site.
    """
    problem = SiteProblem
    conditions = [_IS_OPEN, IS_OF_REGISTERED_SITE]
    if site is not None:
        conditions.append(problem.site_schedule_id == site_number(session, site))
    if rule is not None:
        conditions.append(problem.rule == rule)
    # The database counts: the groups of a thousand sites would be thousands of rows. The index has their order.
    group = (problem.rule, problem.site_schedule_id)
    of_site = (
        select(
            *group,
            func.max(case((problem.needs_attention.is_(True), 1), else_=0)).label("weight"),
            func.count().label("problems"),
            func.count(distinct(problem.document_id)).label("documents"),
            func.min(problem.first_seen).label("first_seen"),
        )
        .where(*conditions)
        .group_by(*group)
        .subquery()
    )
    its = of_site.c
    numbers = (func.sum(its.problems), func.sum(its.documents), func.count())
    first = (func.min(its.site_schedule_id), func.min(its.first_seen))
    query = select(its.rule, func.max(its.weight), *numbers, *first).group_by(its.rule)
    totals = []
    for name, weight, problems, documents, sites, site_id, first_seen in session.execute(query):
        only = read_site(session, site_id) if sites == 1 else None
        totals.append(
            RuleTotal(
                name,
                title_of(name),
                bool(weight),
                int(problems),
                int(documents),
                sites,
                only.name if only else None,
                first_seen,
            )
        )
    return sorted(
        totals, key=lambda each: (not each.needs_attention, -each.number_of_documents, -each.number_of_sites, each.rule)
    )


@frozen
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
    counted = select(*groups, func.count()).where(IS_OF_REGISTERED_SITE).group_by(*groups)
    numbers: dict[str, list[int]] = {}
    # Two statements, as each has an index of its own.
    for condition in (problem.state == OPEN, problem.ended_on > days[0]):
        for rule, first, ended, number in session.execute(counted.where(condition)):
            of_rule = numbers.setdefault(rule, [0] * NIGHTS)
            for at, day in enumerate(days):
                of_rule[at] += number if first <= day and (ended is None or ended > day) else 0
    none = [0] * NIGHTS
    return [RuleTrend(total, tuple(numbers.get(total.rule, none))) for total in open_problems(session)]


@frozen
class ProblemCursor:
    """The place of a problem in the list: the next page begins after it."""

    site_id: int
    problem_id: int


@frozen(kw_only=True)
class OpenProblem:
    """An open problem, with its document as a person knows it; `document_id` is None for a list, or a site.

    `site` is None in the list of one site. `message` to `excerpt` are from its last finding, as far as the log goes
    back.
    """

    site: str | None
    site_id: int
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

    @property
    def cursor(self) -> ProblemCursor:
        """Its place in the list of a rule."""
        return ProblemCursor(self.site_id, self.problem_id)


def documents_of_rule(
    session: Session, rule: str, *, site_id: int | None = None, limit: int = 100, after: ProblemCursor | None = None
) -> list[OpenProblem]:
    """The open problems of a rule at registered sites, or at one, by site; the next page begins `after` the last."""
    problem = SiteProblem
    sites = read_sites(session) if site_id is None else read_sites_of(session, [site_id]).values()
    names = {site.site_id: site.name for site in sites}
    conditions = [_IS_OPEN, problem.rule == rule]
    if site_id is not None:
        conditions.append(problem.site_schedule_id == site_id)
    if after is not None:
        conditions.append(is_after((problem.site_schedule_id, after.site_id), (_number, after.problem_id)))
    query = _PROBLEMS.where(*conditions, problem.site_schedule_id.in_(names))
    rows = session.execute(query.order_by(problem.site_schedule_id, _number).limit(limit))
    return [_problem(row, names[row.site_schedule_id]) for row in rows]


def _problem(row: Row[*tuple[Any, ...]], site: str | None = None) -> OpenProblem:
    site_id, problem_id = row.site_schedule_id, row.site_problem_id
    return record_of(OpenProblem, row, site=site, site_id=site_id, problem_id=problem_id, rule_title=title_of(row.rule))


@frozen
class SiteProblemNumbers:
    """The numbers of open problems of a site: the problems that keep something out, and the others."""

    attention: int
    doubtful: int


def site_problem_numbers(session: Session, site_id: int) -> SiteProblemNumbers:
    """The numbers of open problems of this site."""
    query = select(SiteProblem.needs_attention, func.count()).where(SiteProblem.site_schedule_id == site_id, _IS_OPEN)
    numbers = {bool(needs): number for needs, number in session.execute(query.group_by(SiteProblem.needs_attention))}
    return SiteProblemNumbers(numbers.get(True, 0), numbers.get(False, 0))


def site_problems(session: Session, site_id: int, limit: int = 50, after: int | None = None) -> list[OpenProblem]:
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
        in_place = is_after((SiteProblem.first_seen, first_seen), (_number, after))
        conditions.append(or_(_place > worst, and_(_place == worst, in_place)))
    # The numbers first: a database may look up a title for each row that it sorts.
    numbers = session.scalars(select(_number).where(*conditions).order_by(*order).limit(limit)).all()
    found = {row.site_problem_id: row for row in session.execute(_PROBLEMS.where(_number.in_(numbers)))}
    return [_problem(found[number]) for number in numbers if number in found]
