"""The installation, for operators: the checks of the doctor, the settings, versions, the database."""

from __future__ import annotations

from collections.abc import Iterator

from starlette.responses import Response

from metaharvest.services.installation import Check, examine, facts_about
from metaharvest.web.console.visit import Visit

_KINDS = {"OK": "good", "WARNING": "doubtful", "PROBLEM": "bad"}


def show(visit: Visit) -> Response:
    """The facts; the checks, which ask other servers, only if they are wanted."""
    checks = list(_checks(visit)) if visit.query.get("checks") else None
    return visit.render("installation.html", facts=facts_about(visit.harvester), checks=checks, kinds=_KINDS)


def show_checks(visit: Visit) -> Response:
    """The checks, or their problems, which a browser with JavaScript loads into a page."""
    if visit.query.get("problems"):
        problems = [each for each in _checks(visit) if each.state == "PROBLEM" and not each.is_on_tonight]
        return visit.render_fragment("installation_problems.html", problems=problems)
    return visit.render_fragment("installation_checks.html", checks=list(_checks(visit)), kinds=_KINDS)


def _checks(visit: Visit) -> Iterator[Check]:
    return examine(visit.harvester.settings.file, visit.harvester.now)
