"""The decisions of people: who changed what, before and after."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, time, timedelta

from sqlalchemy.orm import Session
from starlette.responses import Response

from metaharvest.errors import MetaharvestError
from metaharvest.model.actions import ACTIONS
from metaharvest.queries.decisions import DecisionFilter, DecisionRecord, decisions, number_of_site, value_in_words
from metaharvest.services.tables import decisions_csv
from metaharvest.text import one_line
from metaharvest.web.console.forms import day_of
from metaharvest.web.console.visit import Visit

_PATH = "/console/decisions"
_ROWS = 50
_NAMES = ("actor", "site", "action", "since", "until")


def show(visit: Visit) -> Response:
    """The decisions, the newest first."""
    chosen = {name: visit.query.get(name, "").strip() for name in _NAMES}
    found: list[DecisionRecord] = []
    with visit.mistakes(MetaharvestError), visit.harvester.reading() as session:
        found = list(decisions(session, _filter(visit, session, chosen), _ROWS + 1, visit.after))
    given = {name: value for name, value in chosen.items() if value}
    return visit.render(
        "decisions.html",
        decisions=found[:_ROWS],
        chosen=chosen,
        words=words,
        value=value_in_words,
        is_filtered=bool(given),
        csv=visit.link(f"{_PATH}.csv", **given),
        first=visit.link(_PATH, **given) if visit.after is not None else None,
        next=visit.link(_PATH, **given, after=found[_ROWS - 1].decision_id) if len(found) > _ROWS else None,
    )


def table(visit: Visit) -> Response:
    """The decisions of the filter as CSV."""
    chosen = {name: visit.query.get(name, "").strip() for name in _NAMES}
    with visit.harvester.reading() as session:
        return visit.send_table(decisions_csv(decisions(session, _filter(visit, session, chosen))), "decisions.csv")


_LABELS = {
    "contacts.forget": "remove the address of a person",
    "dates.repair": "repair dates that lie in the future",
    "documents.copy": "copy documents",
    "keys.add": "make the key NAME",
    "keys.revoke": "revoke the key NAME",
    "registrations.accept": "accept the registration NAME",
    "registrations.refuse": "refuse the registration NAME",
    "sites.add": "register the site NAME",
    "sites.import": "import the site NAME",
    "users.add": "add the user NAME",
    "users.bind": "bind the user NAME to a provider of OpenID Connect",
    "users.edit": "change the user NAME",
    "users.remove": "remove the user NAME",
    "users.unbind": "unbind the user NAME from a provider of OpenID Connect",
    "works.decide": "decide if the document NAME and another one are the same, or related",
}
"""The labels of actions that have none in ACTIONS, or one with other values."""


def words(decision: DecisionRecord) -> str:
    """The action in words, with its subject."""
    label = _LABELS.get(decision.action) or ACTIONS.get(decision.action, ("", ""))[1]
    subject = one_line(decision.subject, 200)
    for placeholder in ("NAME", "REPORT_ID", "RUN_ID", "DOCUMENT", "REQUEST_ID", "STAGE"):
        if placeholder in label:
            return label.replace(placeholder, subject, 1).removesuffix(" to ADDRESS")
    return f"{label or decision.action}: {subject}"


def _filter(visit: Visit, session: Session, chosen: Mapping[str, str]) -> DecisionFilter:
    until = day_of(chosen["until"], "until")
    return DecisionFilter(
        site_id=number_of_site(session, chosen["site"]) if chosen["site"] else None,
        actor=chosen["actor"] or None,
        action=chosen["action"] or None,
        since=_midnight(visit, day_of(chosen["since"], "since")),
        until=_midnight(visit, until + timedelta(days=1) if until else None),
    )


def _midnight(visit: Visit, day: date | None) -> datetime | None:
    return datetime.combine(day, time(), visit.harvester.settings.harvester.zone) if day else None
