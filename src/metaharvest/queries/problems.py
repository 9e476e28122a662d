"""The open problems of all sites, by rule: the numbers of documents and sites, and the first day."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from sqlalchemy import ColumnElement, case, distinct, func, select
from sqlalchemy.orm import Session

from metaharvest.database.models import HarvestSiteSchedule, SiteProblem
from metaharvest.database.statements import number_without_index
from metaharvest.queries.runs import site_number
from metaharvest.rules import RULES
from metaharvest.sites.registry import read_site


@dataclass(frozen=True, slots=True)
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


def is_of_registered_site() -> ColumnElement[bool]:
    """The condition for the problems of sites that are registered now."""
    # With the index of sites, SQLite would read all problems, site by site.
    return number_without_index(SiteProblem.site_schedule_id).in_(select(HarvestSiteSchedule.site_schedule_id))


def open_problems(session: Session, site: str | None = None, rule: str | None = None) -> list[RuleTotal]:
    """The open problems of registered sites, or of one; those that need attention first, then by documents and sites.

    `rule`: only the problems of this rule.

    Raises MetaharvestError if there is no such site.
    """
    problem = SiteProblem
    conditions = [problem.state == "open", is_of_registered_site()]
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
                RULES[name].title if name in RULES else name,
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
