"""Rows of harvest_site_schedule as sites, and sites as rows: every check of a row is here.

A row may hold any value, as other people change the table with SQL of their own. A row that cannot be used becomes a
`BrokenSite` with a finding for each mistake. `registry.py` decides which rows are read and written;
`admin_policy.py` checks them against the settings and this machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import field
from datetime import date, datetime
from email.utils import parseaddr
from enum import StrEnum
from json import JSONDecodeError
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit

from metaharvest.config.field_types import check_email, url_parts
from metaharvest.config.kinds import SOURCES
from metaharvest.config.secret_references import check_reference
from metaharvest.fetch.local_files import is_file_url
from metaharvest.model import Finding, ListVersion, Notify, Site, SiteOptions, Unit
from metaharvest.model.actions import Remedy, todo
from metaharvest.model.mappings import picked
from metaharvest.model.values import frozen
from metaharvest.sites.options import options_text, read_options
from metaharvest.text import character_in_words, invisible_character, one_line, shown_url

HARVEST_LIST, OAI = "harvest-list", "oai-pmh"
"""The source kinds of sites with a harvest list, and of sites that are OAI-PMH repositories."""

_MAX_FREQUENCY = 99
_OAI_ARGUMENTS = ("verb", "identifier", "metadataPrefix", "set", "from", "until", "resumptionToken")
_OPTIONS_DO_NOT_FIT = "belong to a site of another kind"
NAMES = {
    "documentlisturl": "list_url",
    "contact_email": "contacts",
    "updatefrequency": "every",
    "datenextharvest": "next_harvest",
    "ldapdn": "ldap_name",
    "ldappwd": "ldap_password",
}
"""Columns whose values have other names in forms, and in services/sites.py."""
_Choice = TypeVar("_Choice", bound=StrEnum)


@frozen
class BrokenSite:
    """A row of the schedule that cannot be used, with the reasons. `enabled` is false only if the row says so.

    `contacts` are its valid addresses, `wrong` the sentences of the findings by the names of their values. `options`
    are its options, none if they are a mistake; `source_kind` is the value of the row.
    """

    site_id: int
    name: str
    list_url: str
    enabled: bool
    findings: tuple[Finding, ...]
    contacts: tuple[str, ...] = ()
    wrong: Mapping[str, str] = field(default_factory=dict, hash=False)
    options: SiteOptions = SiteOptions()
    source_kind: str = HARVEST_LIST


def checked_row(values: Mapping[str, object]) -> Site | BrokenSite:
    """The row with these values, one for each column, as a Site; with any mistake, as a BrokenSite."""
    row = _RowCheck(values)
    row.encoding("name", "documentlisturl", "contact_email", "ldapdn", "options")
    site = Site(
        site_id=int(str(values["site_schedule_id"])),
        name=row.name(),
        list_url=row.list_url(),
        contacts=row.contacts(),
        source_kind=row.source_kind(),
        frequency=row.number("updatefrequency", 1, _MAX_FREQUENCY),
        unit=row.choice("unit", Unit, Unit.DAYS),
        next_harvest=row.day("datenextharvest"),
        last_harvest=row.day("datelastharvest"),
        day_of_month=row.number("day_of_month", 1, 31) if values["day_of_month"] is not None else None,
        notify=row.choice("notify", Notify, Notify.ALWAYS),
        enabled=row.flag("enabled"),
        public=row.flag("public"),
        options=row.options(),
        list_version=_list_version(values),
        ldap_name=row.text("ldapdn", 255),
        ldap_password=row.secret_reference("ldappwd", 255),
    )
    if not row.wrong and (site.source_kind == OAI) != (site.options.oai is not None):
        row.note("source_kind", f"the source_kind is {site.source_kind}, and its options {_OPTIONS_DO_NOT_FIT}")
    if site.options.oai is not None and (why := no_base_url(site.list_url)):
        row.note("documentlisturl", why)
    if not row.wrong:
        return site
    findings = tuple(_finding(site.name, sentence) for _, sentence in row.wrong)
    enabled = site.enabled or "enabled" in dict(row.wrong)
    usable = usable_contacts(values["contact_email"])
    wrong = {NAMES.get(column, column): _of_form(column, sentence) for column, sentence in row.wrong}
    own = (site.options, site.source_kind)
    return BrokenSite(site.site_id, site.name, site.list_url, enabled, findings, usable, wrong, *own)


def _of_form(column: str, sentence: str) -> str:
    """The sentence about a value for a person who sees its field: without the name of its column, and commands."""
    words = sentence.partition("; `")[0]
    if words.startswith(column):
        words = f"it{words.removeprefix(column)}"
    return f"{words[:1].upper()}{words[1:]}."


def row_values(site: Site) -> dict[str, Any]:
    """The columns that describe `site` to people; its key and the version of its list are not among them."""
    columns = (
        "name documentlisturl=list_url contact_email=contacts updatefrequency=frequency unit=unit.value "
        "datenextharvest=next_harvest datelastharvest=last_harvest day_of_month source_kind notify=notify.value "
        "enabled public options ldapdn=ldap_name ldappwd=ldap_password"
    )
    return {
        **picked(site, columns),
        "contact_email": ", ".join(site.contacts),
        "options": options_text(site.options),
    }


def is_day(value: object) -> bool:
    """True if this can be the value of a column with a date: an ISO date, or nothing."""
    with suppress(ValueError):
        _day(value)
        return True
    return False


def _day(value: object) -> date | None:
    """Raises ValueError."""
    return None if value is None or value == "" else datetime.fromisoformat(str(value).strip()).date()


def check_list_url(url: str, *, is_repository: bool = False) -> str:
    """`url` trimmed; ValueError with a sentence if it is not an absolute http or https URL.

    A file: URL passes: each harvest checks that the settings allow it to the site.
    """
    trimmed = url.strip()
    if is_file_url(trimmed) and one_line(trimmed, len(trimmed)) == trimmed:
        return trimmed
    parts = url_parts(trimmed)
    what, name = ("base", "oai") if is_repository else ("list", "list.xml")
    if not parts or parts.scheme not in ("http", "https"):
        from metaharvest.fetch.url import shown

        right = f"write it like https://example.org/{name}"
        raise ValueError(f"the {what} URL '{shown(trimmed)}' is not a web address; {right}")
    if odd := invisible_character(trimmed):
        remedy = "write it as %20" if odd == " " else "delete it"
        raise ValueError(f"the {what} URL contains {character_in_words(odd)}; {remedy}")
    return trimmed


def no_base_url(url: str) -> str:
    """The sentence about the mistake in `url` as the base URL of an OAI-PMH repository; empty if there is none."""
    try:
        question = urlsplit(url).query
    except ValueError:  # it is no URL at all, which another check reports
        return ""
    arguments = parse_qsl(question, keep_blank_values=True)
    asked = [name for name, _ in arguments if name in _OAI_ARGUMENTS]
    if not asked:
        return ""
    others = urlencode([each for each in arguments if each[0] not in _OAI_ARGUMENTS])
    right = shown_url(url.partition("?")[0] + (f"?{others}" if others else ""))
    return f"the base URL has a question of OAI-PMH behind it ({asked[0]}=); leave that away: {right}"


class _RowCheck:
    """One row during its check. A method returns the value of a column, and notes mistakes in `wrong`."""

    def __init__(self, values: Mapping[str, object]) -> None:
        self.values = values
        self.wrong: list[tuple[str, str]] = []
        """Columns, each with the sentence about its mistake."""

    def encoding(self, *columns: str) -> None:
        for column in columns:
            if "\ufffd" in str(self.values[column]):
                self.note(column, f"{column} is {_quoted(self.values[column])}; write it as UTF-8 text")

    def name(self) -> str:
        value = self.values["name"]
        name = str(value or "")
        if not name or len(name) > 100 or one_line(name) != name:
            self.note("name", f"the name is {_quoted(value)}; it must have 1 to 100 printable characters")
        return one_line(name, 100) or f"site {self.values['site_schedule_id']}"

    def list_url(self) -> str:
        url = str(self.values["documentlisturl"] or "")
        try:
            return check_list_url(url, is_repository=self.values["source_kind"] == OAI)
        except ValueError as error:
            self.note("documentlisturl", str(error))
            return url

    def contacts(self) -> tuple[str, ...]:
        """The contact addresses in the text; all of them must be valid."""
        try:
            contacts = _each_once(map(check_email, split_addresses(self.values["contact_email"])))
            if not contacts:
                raise ValueError("there is no contact; give at least one email address")
        except ValueError as error:
            self.note("contact_email", str(error))
            return ()
        return contacts

    def source_kind(self) -> str:
        value = self.values["source_kind"]
        if value not in SOURCES:
            kinds = SOURCES.names()
            allowed = kinds[0] if len(kinds) == 1 else f"one of {', '.join(kinds)}"
            self.note("source_kind", f"source_kind is {_quoted(value)}; it must be {allowed}")
        return str(value)

    def number(self, column: str, low: int, high: int) -> int:
        value = self.values[column]
        try:
            number = int(str(value).strip())
        except ValueError:
            number = low - 1
        if not low <= number <= high or isinstance(value, float):
            self.note(column, f"{column} is {_quoted(value)}; it must be a whole number from {low} to {high}")
            return low
        return number

    def choice(self, column: str, choices: type[_Choice], default: _Choice) -> _Choice:
        value = self.values[column]
        try:
            return choices(str(value).strip().lower())
        except ValueError:
            self.note(column, f"{column} is {_quoted(value)}; it must be one of {', '.join(choices)}")
            return default

    def day(self, column: str) -> date | None:
        value = self.values[column]
        if not is_day(value):
            self.note(column, f"{column} is {_quoted(value)}; it must be a date like 2026-11-20")
            return None
        return _day(value)

    def text(self, column: str, limit: int) -> str | None:
        value = str(self.values[column] or "").strip()
        if one_line(value, limit) != value:
            self.note(column, f"{column} is {_quoted(value)}; it must be at most {limit} printable characters")
        return value or None

    def secret_reference(self, column: str, limit: int) -> str | None:
        """A value that is no secret reference may be the secret itself: it is not shown."""
        value = str(self.values[column] or "").strip()
        try:
            check_reference(value)
            if one_line(value, limit) != value:
                raise ValueError(f"it must have at most {limit} printable characters")
        except ValueError as error:
            remedy = f"{todo('sites.set_password')} (or `none`) corrects it"
            self.note(column, f"{column} (not shown) cannot be used, since {error}; {remedy}")
        return value or None

    def flag(self, column: str) -> bool:
        value = str(self.values[column]).strip().lower()
        if value in ("1", "true", "t", "yes"):
            return True
        if value not in ("0", "false", "f", "no"):
            self.note(column, f"{column} is {_quoted(self.values[column])}; it must be 1 or 0")
        return False

    def options(self) -> SiteOptions:
        raw = self.values["options"]
        if raw is None or raw == "":
            return SiteOptions()
        try:
            return read_options(str(raw))
        except RecursionError:
            self.note("options", f"the options {_quoted(raw)} cannot be used: they are nested too deeply")
        except (ValueError, TypeError, AttributeError) as error:
            shown = f" {_quoted(raw)}" if isinstance(error, JSONDecodeError) else ""
            self.note("options", f"the options{shown} cannot be used: {one_line(str(error))}")
        return SiteOptions()

    def note(self, column: str, sentence: str) -> None:
        self.wrong.append((column, sentence))


def split_addresses(text: object) -> list[str]:
    """The parts of a text with commas, semicolons or line breaks between them, as in a cell of a spreadsheet."""
    parts = (part.strip() for part in re.split("[,;\n]", str(text or "")))
    return [part for part in parts if part]


def usable_contacts(text: object) -> tuple[str, ...]:
    """The addresses in a text that are email addresses; the others are left out."""
    found = []
    for address in split_addresses(text):
        with suppress(ValueError):
            found.append(check_email(address))
    return _each_once(found)


def _each_once(addresses: Iterable[str]) -> tuple[str, ...]:
    """The addresses without repetitions: mail servers ignore the case of letters."""
    found: dict[str, str] = {}
    for address in addresses:
        found.setdefault(address.casefold(), address)
    return tuple(found.values())


def named_contacts(texts: Iterable[str]) -> tuple[str, ...]:
    """The addresses that a repository names: `mailto:keeper@example.org`, `The Keeper <keeper@example.org>`."""
    named = (re.sub("(?i)mailto:", "", each) for each in split_addresses(", ".join(texts)))
    return usable_contacts(", ".join(parseaddr(each)[1] or each for each in named))


def _list_version(values: Mapping[str, object]) -> ListVersion | None:
    served = (values["list_etag"], values["list_last_modified"], values["list_sha256"])
    etag, last_modified, sha256 = (None if value is None else str(value) for value in served)
    return ListVersion(etag, last_modified, sha256) if sha256 else None


def _finding(name: str, sentence: str) -> Finding:
    return Finding(
        "site.row",
        f"{name}: {sentence}.",
        Remedy(
            "Correct it with {}, or switch it off with {}.",
            todo("sites.edit", name=name),
            todo("sites.disable", name=name),
        ),
    )


def _quoted(value: object) -> str:
    return "empty" if value is None or value == "" else f"'{one_line(str(value), 80)}'"
