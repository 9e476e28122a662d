"""The open problems by rule, the sites that failed as a whole, a rule with its documents, letters to the contacts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from starlette.responses import Response

from metaharvest.queries.problems import (
    NIGHTS,
    ProblemCursor,
    RuleTrend,
    documents_of_rule,
    open_problems,
    rule_trends,
)
from metaharvest.queries.runs import site_number
from metaharvest.queries.sites import site_names
from metaharvest.queries.trends import named_failed_sites
from metaharvest.rules import RULES
from metaharvest.services.reports import letters_about
from metaharvest.services.tables import problems_csv, rule_table
from metaharvest.text import whole_number
from metaharvest.web.console.visit import NotFound, Visit

_ON_A_PAGE = 50
_LETTERS = 20

ORDERS: Mapping[str, Callable[[RuleTrend], Any]] = {
    "weight": lambda each: 0,
    "rule": lambda each: each.total.rule_title.casefold(),
    "documents": lambda each: -each.total.number_of_documents,
    "sites": lambda each: -each.total.number_of_sites,
    "since": lambda each: each.total.first_seen,
    "trend": lambda each: each.trend[0] - each.trend[-1],
}
"""The orders of the rules; `weight` is the order of the command: rules that need attention first, then by documents."""


def show(visit: Visit) -> Response:
    """The rules with open problems, and the sites that failed as a whole."""
    order = visit.query.get("sort", "weight")
    order = order if order in ORDERS else "weight"
    today = visit.harvester.today()
    with visit.harvester.reading() as session:
        rules = sorted(rule_trends(session, today), key=ORDERS[order])
        failed = named_failed_sites(session, today)
    failed.sort(key=lambda each: each.failed_since)
    return visit.render("problems.html", rules=rules, failed=failed, order=order, nights=NIGHTS)


def show_csv(visit: Visit) -> Response:
    """The table of `metaharvest problems --csv`."""
    with visit.harvester.reading() as session:
        found = open_problems(session)
    return visit.send_table(problems_csv(found), "problems.csv")


def show_rule(visit: Visit) -> Response:
    """What a rule means, what to do, and its documents."""
    rule = _rule(visit)
    site = visit.query.get("site") or None
    with visit.harvester.reading() as session:
        site_id = None if site is None else site_number(session, site)
        cursor = _cursor(visit.query.get("after", ""))
        found = documents_of_rule(session, rule, site_id=site_id, limit=_ON_A_PAGE + 1, after=cursor)
        total = next(iter(open_problems(session, site, rule)), None)
        sites = sorted(site_names(session).values(), key=str.casefold)
    following = None
    if len(found) > _ON_A_PAGE:
        last = found[_ON_A_PAGE - 1].cursor
        following = visit.link("/console/problems", rule, site=site, after=f"{last.site_id}.{last.problem_id}")
    return visit.render(
        "rule.html",
        rule=rule,
        about=RULES.get(rule),
        total=total,
        documents=found[:_ON_A_PAGE],
        site=site or "",
        sites=[("", "all"), *((name, name) for name in sites)],
        first=visit.link("/console/problems", rule, site=site) if cursor else "",
        next=following or "",
    )


def show_documents_csv(visit: Visit) -> Response:
    """All documents of a rule, as a table."""
    rule = _rule(visit)
    site = visit.query.get("site") or None
    with visit.harvester.reading() as session:
        site_id = None if site is None else site_number(session, site)
    return visit.send_table(rule_table(visit.harvester, rule, site_id), f"{rule}.csv")


def show_letters(visit: Visit) -> Response:
    """Letters about a rule, one for each site, to be copied."""
    rule = _rule(visit)
    site, after = visit.query.get("site") or None, visit.query.get("after", "")
    found = letters_about(visit.harvester, rule, site=site, limit=_LETTERS, after=after)
    return visit.render(
        "rule_letters.html",
        rule=rule,
        about=RULES[rule],
        letters=found.letters,
        first=visit.link("/console/problems", rule, "letters", site=site) if after else "",
        next=visit.link("/console/problems", rule, "letters", after=found.next) if found.next else "",
    )


def _rule(visit: Visit) -> str:
    rule = visit.path["rule"]
    if rule not in RULES:
        raise NotFound("There is no such rule.")
    return rule


def _cursor(text: str) -> ProblemCursor | None:
    site, _, problem = text.partition(".")
    site_id, problem_id = whole_number(site), whole_number(problem)
    return None if site_id is None or problem_id is None else ProblemCursor(site_id, problem_id)
