"""The templates of the console."""

from __future__ import annotations

from datetime import date, datetime
from functools import cache
from pathlib import Path
from zoneinfo import ZoneInfo

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from metaharvest.model import OutcomeKind, SiteRunStatus
from metaharvest.queries.outbox import Delivery
from metaharvest.reports.phrasing import LABELS, STATUSES, duration, rate
from metaharvest.rules import RULES
from metaharvest.text import clean

_FOLDER = Path(__file__).parent / "templates"


@cache
def templates() -> Environment:
    """The templates: every value is escaped, an undefined one is an error, and texts have no control characters."""
    made = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_cleaned,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["number"] = _number
    made.filters["day"] = _day
    made.filters["duration"] = _duration
    made.filters["rate"] = rate
    made.filters["site_status"] = _site_status
    made.filters["outcome"] = _outcome
    made.filters["delivery_state"] = delivery_state
    made.tests["known_rule"] = RULES.__contains__
    return made


def moment_in(zone: ZoneInfo, moment: datetime) -> str:
    """A moment for people: date, time and zone."""
    return f"{moment.astimezone(zone):%Y-%m-%d %H:%M} {zone.key}"


def delivery_state(delivery: Delivery) -> tuple[str, str]:
    """The state of a delivery in a word, and the kind of its badge."""
    if delivery.status == "sent":
        return "sent", "good"
    if delivery.status == "queued":
        return ("waiting", "doubtful") if delivery.attempts else ("waiting", "quiet")
    return ("refused", "bad") if delivery.last_attempt_at else ("dropped", "quiet")


def _cleaned(value: object) -> object:
    return clean(value) if type(value) is str else value


def _number(value: float) -> str:
    return f"{value:,}"


def _duration(seconds: float | None) -> str:
    return "–" if seconds is None else duration(seconds)


def _site_status(status: str) -> str:
    """The status of a site run in the words of the mails."""
    return STATUSES.get(SiteRunStatus(status), status)


def _outcome(value: str) -> str:
    """An outcome in the words of the mails."""
    return LABELS[OutcomeKind(value)] if value in list(OutcomeKind) else value


def _day(value: date | None) -> str:
    return value.isoformat() if value else "–"
