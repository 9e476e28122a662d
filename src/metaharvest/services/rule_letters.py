"""Letters to the contacts of the sites that have problems of one rule. Nothing is sent: a person copies the text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import func, select

from metaharvest.database.models import SiteProblem
from metaharvest.errors import MetaharvestError
from metaharvest.model import Site
from metaharvest.problems.follow import OPEN
from metaharvest.queries.rule_trends import documents_of_rule
from metaharvest.reports.letters import Letter, LetterDocument, rule_letter
from metaharvest.rules import RULES
from metaharvest.services.harvester import Harvester
from metaharvest.sites.registry import read_sites
from metaharvest.text import one_line

DOCUMENTS = 50
"""Documents that a letter names."""


@dataclass(frozen=True, slots=True)
class SiteLetter:
    """The letter for one site; without contacts it has no recipients."""

    site: str
    site_id: int
    letter: Letter


@dataclass(frozen=True, slots=True)
class Letters:
    """Some letters in the order of the sites' names; `next`: the name of the site after which more follow."""

    letters: tuple[SiteLetter, ...]
    next: str | None


def letters_about(
    harvester: Harvester, rule: str, *, site: str | None = None, limit: int = 20, after: str = ""
) -> Letters:
    """A letter for each registered site with open problems of the rule, or for this site alone.

    Raises MetaharvestError for an unknown rule.
    """
    if rule not in RULES:
        raise MetaharvestError(f"There is no rule '{one_line(rule)}'.")
    problem = SiteProblem
    open_of_rule = (problem.state == OPEN, problem.rule == rule)
    with harvester.reading() as session:
        counted = select(problem.site_schedule_id, func.count()).where(*open_of_rule).group_by(problem.site_schedule_id)
        numbers = {site_id: int(number) for site_id, number in session.execute(counted)}
        having = [each for each in read_sites(session) if each.site_id in numbers and site in (None, each.name)]
        following = [each for each in having if _place(each.name) > _place(after)] if after else having
        made = []
        for each in following[:limit]:
            found = documents_of_rule(session, rule, site_id=each.site_id, limit=DOCUMENTS)
            named = [
                LetterDocument(row.document_id or "", row.title or "", row.message or "", row.line) for row in found
            ]
            contacts: Sequence[str] = each.contacts if isinstance(each, Site) else ()
            name = one_line(harvester.settings.harvester.name)
            letter = rule_letter(rule, each.name, contacts, named, numbers[each.site_id], name)
            made.append(SiteLetter(each.name, each.site_id, letter))
    return Letters(tuple(made), following[limit - 1].name if len(following) > limit else None)


def _place(name: str) -> tuple[str, str]:
    return name.lower(), name
