"""Imports the schedule of a Metacat Harvester: decides about each row, and registers the accepted ones.

The decision is pure: its input is the rows, the registered sites, and a date; its output is the result for each row. A
row that was imported before, or whose list is already registered, stays as it is.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from enum import StrEnum
from itertools import chain, count
from typing import Any
from urllib.parse import urlsplit

from sqlalchemy.orm import Session

from metaharvest.errors import ScheduleError
from metaharvest.model import Site
from metaharvest.model.values import frozen
from metaharvest.sites.registry import add_site, new_site
from metaharvest.sites.rows import BrokenSite
from metaharvest.sites.same_source import source_key, url_key
from metaharvest.takeover.metacat_rows import Converted, converted
from metaharvest.takeover.metacat_tables import TableRow
from metaharvest.text import shown_url

_IN_DN = re.compile(r"(?:^|,)\s*(o|uid|cn)\s*=\s*([^,]+)", re.IGNORECASE)
_LONGEST_NAME = 80
"""Leaves room for a suffix that makes a name unique."""


class RowVerdict(StrEnum):
    """The result for a row; `present`: its list is already registered, and that site stays as it is."""

    TAKEN = "taken"
    CHANGED = "changed"
    PRESENT = "present"
    REFUSED = "refused"


@frozen
class ImportedRow:
    """The result for one row; `place` is the row's place. All texts may be shown.

    `site` is the name of its site; empty if it is refused. `changes` name the changed values, `reasons` the reasons for
    a refusal, `to_do` the next steps for a person. `values` are the columns of a new site.
    """

    place: str
    schedule_id: str
    verdict: RowVerdict
    list_url: str
    site: str = ""
    changes: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    to_do: tuple[str, ...] = ()
    values: Mapping[str, Any] | None = None


def decide(
    rows: Iterable[TableRow],
    registered: Sequence[Site | BrokenSite],
    today: date,
    allowed: Callable[[Site], None],
    start: str,
) -> list[ImportedRow]:
    """The result for each row. `allowed` raises ScheduleError for a site that the settings do not allow.

    `start` is the beginning of a command line that uses the same settings.
    """
    plan = _ImportPlan(registered, today, allowed, start)
    return [plan.decided(row) for row in rows]


def add_rows(session: Session, rows: Iterable[ImportedRow]) -> dict[str, int]:
    """Register the accepted sites; return their numbers by name."""
    return {row.site: add_site(session, row.values).site_id for row in rows if row.values is not None}


def totals(rows: Iterable[ImportedRow]) -> dict[str, int]:
    """The number of rows, and the number for each result."""
    counts = Counter(row.verdict for row in rows)
    return {"rows": counts.total(), **{verdict.value: counts[verdict] for verdict in RowVerdict}}


class _ImportPlan:
    """Decides row by row; knows the used names and lists."""

    def __init__(
        self, registered: Sequence[Site | BrokenSite], today: date, allowed: Callable[[Site], None], start: str
    ) -> None:
        self._names = {site.name.casefold() for site in registered}
        self._owners = {source_key(site): site for site in registered}
        self._planned: dict[Hashable, tuple[str, Converted]] = {}
        self._seen: dict[Hashable, Converted] = {}
        self._today = today
        self._allowed = allowed
        self._start = start

    def decided(self, row: TableRow) -> ImportedRow:
        """The result for this row, which depends on the rows before it."""
        schedule_id = (row.values.get("site_schedule_id") or "").strip()
        url = (row.values.get("documentlisturl") or "").strip()
        result = ImportedRow(row.place, schedule_id, RowVerdict.REFUSED, shown_url(url))
        if row.problem:
            again = "Correct the line, and import again: registered sites are not doubled."
            return replace(result, reasons=(f"{row.problem[:1].upper()}{row.problem[1:]}.",), to_do=(again,))
        made, key = converted(row.values, self._today), url_key(url)
        if owner := self._owners.get(key):
            # The first row has the site's own contacts; a further row gives the same result as at the first import.
            first = self._seen.setdefault(key, made)
            known = [*owner.contacts, *(made.contacts if first is made else [])]
            return self._second(result, made, owner.name, known)
        if key in self._planned:
            name, first = self._planned[key]
            return self._second(result, made, name, first.contacts)
        if made.problems:
            return self._refused(result, made, made.problems)
        made.values["name"] = self._name(url, made.values["ldapdn"] or "", schedule_id)
        try:
            self._allowed(new_site(made.values))
        except ScheduleError as error:
            return self._refused(result, made, [f"{line.rstrip('.')}." for line in str(error).splitlines()])
        return self._taken(result, made, key)

    def _taken(self, result: ImportedRow, made: Converted, key: Hashable) -> ImportedRow:
        name = made.values["name"]
        self._names.add(name.casefold())
        self._planned[key] = (name, made)
        to_do = []
        if made.password:
            reference = f"file:{name}.ldap-password"
            command = f"{self._start} sites edit {shlex.quote(name)} --ldappwd {shlex.quote(reference)}"
            where = f"put it into a file {name}.ldap-password beside the settings, which only the harvester may read"
            to_do.append(
                f"Where the site's own login is needed, {where} (or use env: or keyring:), and then: {command}"
            )
        verdict = RowVerdict.CHANGED if made.changes else RowVerdict.TAKEN
        return replace(
            result, verdict=verdict, site=name, changes=tuple(made.changes), to_do=tuple(to_do), values=made.values
        )

    def _second(self, result: ImportedRow, made: Converted, name: str, known: Sequence[str]) -> ImportedRow:
        """The result for a further row of a site: the same site, unless the row has contacts that are not `known`."""
        more = [each for each in made.contacts if each.casefold() not in {one.casefold() for one in known}]
        if not more:
            return replace(result, verdict=RowVerdict.PRESENT, site=name)
        reason = f"Another row has the same list, and became the site {name}; a list is harvested once."
        command = f"{self._start} sites edit {shlex.quote(name)}"
        command += "".join(f" --add-contact {shlex.quote(each)}" for each in more)
        return replace(result, reasons=(reason,), to_do=(f"To let its contacts have the reports too: {command}",))

    def _refused(self, result: ImportedRow, made: Converted, problems: Sequence[str]) -> ImportedRow:
        reasons = tuple(
            problem if problem.startswith("file:") else f"{problem[:1].upper()}{problem[1:]}" for problem in problems
        )
        command = made.add_command(self._start)
        login = "URL is the row's DOCUMENTLISTURL with its user name and password, which are never shown"
        by_hand = f"register it ({login})" if made.has_login else "register it"
        again = f"Correct the row and import again (registered sites are not doubled), or {by_hand}: {command}"
        return replace(result, reasons=reasons, to_do=(again,))

    def _name(self, url: str, dn: str, schedule_id: str) -> str:
        """A name that is free, made from the host of the list; if that is taken, also from the login's name."""
        parts = {key.lower(): value for key, value in _IN_DN.findall(dn)}
        hints = [_plain(parts[key]) for key in ("o", "uid", "cn") if key in parts]
        host = _plain((urlsplit(url).hostname or "").removeprefix("www."))
        base = host or "-".join(hints) or f"site-{schedule_id}".rstrip("-")
        candidates = [base]
        for hint in hints:
            candidates.append(f"{candidates[-1]}-{hint}" if hint not in candidates[-1] else candidates[-1])
        numbered = (f"{base}-{number}" for number in count(2))
        return next(each for each in chain(candidates, numbered) if each.casefold() not in self._names)


def _plain(text: str) -> str:
    """`text` as a part of a name: lower case, letters and digits of any language, dots and hyphens."""
    kept = "".join(character if character.isalnum() or character in ".-" else "-" for character in text.lower())
    return re.sub("-{2,}", "-", kept).strip("-.")[:_LONGEST_NAME]
