"""The open problems of all sites, by rule: the numbers of documents and sites, and the first day."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from sqlalchemy import Row, distinct, func, select
from sqlalchemy.orm import Session

from metaharvest.database.models import SiteProblem
from metaharvest.queries.runs import site_number
from metaharvest.queries.sites import site_names
from metaharvest.rules import RULES


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


def open_problems(session: Session, site: str | None = None, rule: str | None = None) -> list[RuleTotal]:
    """The open problems of registered sites, or of one; those that need attention first, then by documents and sites.

    `rule`: only the problems of this rule.

    Raises MetaharvestError if there is no such site.
    """
    problem, names = SiteProblem, site_names(session)
    wanted = {site_number(session, site)} if site is not None else names.keys()
    query = (
        select(
            problem.rule,
            problem.site_schedule_id,
            problem.needs_attention,
            func.count(),
            func.count(distinct(problem.document_id)),
            func.min(problem.first_seen),
        )
        .where(problem.state == "open")
        .group_by(problem.rule, problem.site_schedule_id, problem.needs_attention)
    )
    if rule is not None:
        query = query.where(problem.rule == rule)
    by_rule: dict[str, list[Row[str, int, bool, int, int, date]]] = {}
    for row in session.execute(query):
        if row[1] in wanted:
            by_rule.setdefault(row[0], []).append(row)
    totals = []
    for name, of_rule in by_rule.items():
        sites = {row[1] for row in of_rule}
        totals.append(
            RuleTotal(
                name,
                RULES[name].title if name in RULES else name,
                any(row[2] for row in of_rule),
                sum(row[3] for row in of_rule),
                sum(row[4] for row in of_rule),
                len(sites),
                names.get(min(sites)) if len(sites) == 1 else None,
                min(row[5] for row in of_rule),
            )
        )
    return sorted(
        totals, key=lambda each: (not each.needs_attention, -each.number_of_documents, -each.number_of_sites, each.rule)
    )
