"""The templates of the console."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from zoneinfo import ZoneInfo

from jinja2 import Environment
from markupsafe import Markup

from metaharvest.model import OutcomeKind, SiteRunStatus
from metaharvest.queries.outbox import Delivery
from metaharvest.reports.phrasing import LABELS, STATUSES, duration, rate
from metaharvest.rules import RULES, title_of
from metaharvest.text import counted
from metaharvest.web.templates import environment

_FOLDER = Path(__file__).parent / "templates"
_BEGIN = re.compile(r"<(tr|th|td)(?=[\s>])([^<>]*)")
_NO_LABEL = ("Choose", "Compare", "Action", "Actions")
"""Columns of boxes and buttons, which say themselves what they are."""


@cache
def templates() -> Environment:
    """The templates, with filters for numbers, days, states and tables."""
    made = environment(_FOLDER)
    made.filters |= {
        "number": "{:,}".format,
        "counted": counted,
        "day": lambda day: day.isoformat() if day else "–",
        "duration": lambda seconds: "–" if seconds is None else duration(seconds),
        "rate": rate,
        "site_status": lambda status: STATUSES.get(SiteRunStatus(status), status),
        "outcome": lambda value: LABELS[OutcomeKind(value)] if value in list(OutcomeKind) else value,
        "delivery_state": delivery_state,
        "rule_title": title_of,
        "labelled": _labelled,
    }
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


def _labelled(rows: Markup, columns: Sequence[str | Sequence[str]]) -> Markup:
    """The rows of a table, each cell with the heading of its column: on a narrow screen a row is a block of lines.

    A cell that has a label in the template keeps it.
    """
    headings = [column if isinstance(column, str) else column[0] for column in columns]
    labels = [Markup(heading).striptags().partition(" ▾")[0] for heading in headings]
    place = 0

    def label(found: re.Match[str]) -> str:
        nonlocal place
        if found[1] == "tr":
            place = 0
            return found[0]
        place += 1
        name = labels[place - 1] if place <= len(labels) else ""
        if not name or name in _NO_LABEL or " data-label=" in found[2]:
            return found[0]
        return f'<{found[1]} data-label="{Markup.escape(name)}"{found[2]}'

    return Markup(_BEGIN.sub(label, rows))
