"""A row of the Metacat Harvester's schedule as a row of ours: kept and changed values, with reasons. Pure functions.

The Metacat Harvester read some values in its own way: an unknown unit meant days, a frequency of zero meant every run.
Such values become ours with a sentence. A password in clear is never imported, and never shown.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any
from urllib.parse import urlsplit

from metaharvest.config.field_types import check_email
from metaharvest.errors import ScheduleError
from metaharvest.model import Unit
from metaharvest.sites.due import due_since
from metaharvest.sites.registry import new_site
from metaharvest.sites.rows import check_list_url, is_day, split_addresses
from metaharvest.text import one_line, shown_url

_MOST = 99
"""Units between two harvests, as a row of ours may have it."""

_DAYS = {Unit.DAYS: 1, Unit.WEEKS: 7, Unit.MONTHS: 30}
"""The number of days that the Metacat Harvester counted for each."""

_OTHER_DATES = ("%d-%b-%y", "%d-%b-%Y")
"""Dates as Oracle writes them."""


@dataclass(slots=True)
class Converted:
    """A row of ours, as far as possible: `values` by column; `changes` name the changed values, with reasons.

    `problems` are the reasons why it cannot be imported; `password`: it had one in clear.
    """

    values: dict[str, Any] = field(default_factory=dict)
    changes: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    password: bool = False

    @property
    def contacts(self) -> list[str]:
        """The addresses of its contacts."""
        return split_addresses(self.values.get("contact_email"))

    @property
    def has_login(self) -> bool:
        """True if its list URL has a user name or password."""
        return "@" in urlsplit(self.values.get("documentlisturl", "")).netloc

    def add_command(self, start: str) -> str:
        """The command that registers it by hand, once its contact is known; `start` is its beginning.

        A list URL that has a login is shown as URL: logins are never shown.
        """
        values = {name: value for name, value in self.values.items() if value is not None}
        url = values.get("documentlisturl", "URL")
        options = ["--list-url", "URL" if self.has_login else shown_url(url)]
        options += ["--contact", values.get("contact_email") or "EMAIL"]
        options += ["--every", str(values.get("updatefrequency", 1)), "--unit", str(values.get("unit", Unit.DAYS))]
        if "ldapdn" in values:
            options += ["--ldapdn", values["ldapdn"]]
        return f"{start} sites add NAME {shlex.join(options)}"


def converted(row: Mapping[str, str | None], today: date) -> Converted:
    """The row with these values, columns in lower case, as one of ours; other columns are not set."""
    made = Converted()
    values = {name: (value or "").strip() for name, value in row.items()}
    _url(values.get("documentlisturl", ""), made)
    _contacts(values.get("contact_email", ""), made)
    _frequency(values.get("updatefrequency", ""), values.get("unit", ""), made)
    _login(values.get("ldapdn", ""), values.get("ldappwd", ""), made)
    _dates(values.get("datelastharvest", ""), values.get("datenextharvest", ""), today, made)
    return made


def read_day(text: str) -> date | None:
    """A date, written with a time or without, as databases write it; None if it is none."""
    if is_day(text):
        return datetime.fromisoformat(text).date() if text else None
    for written in _OTHER_DATES:
        with suppress(ValueError):
            return datetime.strptime(text, written).replace(tzinfo=UTC).date()
    return None


def _url(text: str, made: Converted) -> None:
    try:
        made.values["documentlisturl"] = check_list_url(text)
    except ValueError as error:
        made.problems.append(f"{error}." if text else "DOCUMENTLISTURL is empty: there is no list to harvest.")


def _contacts(text: str, made: Converted) -> None:
    usable, left_out = [], []
    for address in split_addresses(text):
        try:
            usable.append(check_email(address))
        except ValueError:
            left_out.append(one_line(address, 80))
    made.values["contact_email"] = ", ".join(dict.fromkeys(usable))
    named = ", ".join(f"'{each}'" for each in left_out)
    if not usable:
        made.problems.append(
            f"CONTACT_EMAIL is {named}, which is not an email address." if left_out else "CONTACT_EMAIL is empty."
        )
    elif left_out:
        made.changes.append(f"the contact {named} was left out: that is not an email address")


def _frequency(number: str, unit_text: str, made: Converted) -> None:
    unit = _unit(unit_text, made)
    try:
        exact = float(number or 0)
        every = int(exact)
    except (ValueError, OverflowError):
        shown = one_line(number, 40)
        made.problems.append(f"UPDATEFREQUENCY is '{shown}'; it must be a whole number from 1 to {_MOST}.")
        return
    if exact > 0 and exact != every:
        made.changes.append(
            f"every {one_line(number, 40)} {unit} became every {every or 1} {unit}: the number is a whole one"
        )
        every = every or 1
    if every < 1:
        reason = f"the frequency is {every if number else 'empty'}, by which every run harvested it"
        made.changes.append(f"{reason}: it is every day now")
        every, unit = 1, Unit.DAYS
    elif every > _MOST:
        fitting = _fitting(every * _DAYS[unit])
        made.changes.append(f"every {every} {unit} became every {fitting[0]} {fitting[1]}: the number goes to {_MOST}")
        every, unit = fitting
    made.values |= {"updatefrequency": every, "unit": unit.value}


def _unit(text: str, made: Converted) -> Unit:
    with suppress(ValueError):
        return Unit(text)
    plain = f"{text.lower().rstrip('s')}s"
    if plain not in list(Unit):
        shown = f"'{one_line(text, 40)}'" if text else "empty"
        made.changes.append(f"the unit is {shown}, which counted as days: it is days now")
        return Unit.DAYS
    as_days = "" if plain == Unit.DAYS else "; the Metacat Harvester counted it as days, since it was not so written"
    made.changes.append(f"the unit '{one_line(text, 40)}' became {plain}{as_days}")
    return Unit(plain)


def _fitting(days: int) -> tuple[int, Unit]:
    """This number of days, or nearly, in the smallest unit that needs no more than _MOST."""
    for unit, length in _DAYS.items():
        if (number := round(days / length)) <= _MOST:
            return number, unit
    return _MOST, Unit.MONTHS


def _login(name: str, password: str, made: Converted) -> None:
    made.values["ldapdn"] = name or None
    if password:
        made.password = bool(name)
        without = "" if name else ", and there is no LDAPDN that it belongs to"
        made.changes.append(f"the password in LDAPPWD was not taken over: it is in clear{without}")


def _dates(last_text: str, next_text: str, today: date, made: Converted) -> None:
    last = read_day(last_text)
    if last_text and last is None:
        made.changes.append(f"the last harvest was left out: '{one_line(last_text, 40)}' is not a date like 2026-11-20")
    elif last is not None and last > today:
        made.changes.append(f"the last harvest was left out: {last} is in the future")
        last = None
    planned = read_day(next_text)
    if next_text and planned is None:
        made.changes.append(f"the next harvest is today: '{one_line(next_text, 40)}' is not a date like 2026-11-20")
        planned = today
    made.values |= {"datelastharvest": last, "datenextharvest": planned}
    # A site that has been due for a long time would be reported as overdue at once.
    since = None
    with suppress(ScheduleError, KeyError):
        since = due_since(new_site({**made.values, "name": "new"}))
    if since is not None and since < today:
        made.changes.append(f"the next harvest is today: it was due on {since}")
        made.values["datenextharvest"] = today
