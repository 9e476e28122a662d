"""Sites as files, JSON or CSV for spreadsheets, with all registered values of a site.

An export that is imported again gives the same values. Reading reports the faults of each line.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from metaharvest.config.secret_references import is_reference
from metaharvest.errors import MetaharvestError
from metaharvest.fetch.url import without_login
from metaharvest.model import OaiOptions, Site, SiteOptions
from metaharvest.model.kinds import AS_SETTINGS
from metaharvest.model.values import frozen
from metaharvest.sites.options import options_shown, options_text
from metaharvest.sites.rows import HARVEST_LIST, OAI, row_values
from metaharvest.text import one_line

FORMAT = "metaharvest sites 1"
"""The `format` of a JSON file, which other JSON files lack."""

_COLUMNS = {
    "name": "name",
    "source_kind": "source_kind",
    "list_url": "documentlisturl",
    "contacts": "contact_email",
    "every": "updatefrequency",
    "unit": "unit",
    "next_harvest": "datenextharvest",
    "last_harvest": "datelastharvest",
    "day_of_month": "day_of_month",
    "notify": "notify",
    "enabled": "enabled",
    "public": "public",
    "ldapdn": "ldapdn",
    "ldappwd": "ldappwd",
}
"""The name of each value in a file, and in the schedule."""

_OWN = tuple(each.name for each in fields(SiteOptions) if each.name != "oai")
_OAI = tuple("sets" if each.name == "set_spec" else each.name for each in fields(OaiOptions))
_LISTS = {"contacts": ", ", "allow_networks": ", ", "groups": ", ", "sets": " "}
"""Values that are lists, and the separator of their parts in a cell."""

_NUMBERS = ("every", "day_of_month", "max_loss", "full_every")
_FLAGS = {"enabled": True, "public": True, "post": False}
"""Values that are true or false, and their defaults."""

CSV_COLUMNS = (*_COLUMNS, *_OWN, *(f"oai_{name}" for name in _OAI))

_FORMULA = re.compile(r"'*[=+\-@\t\r＝＋－＠]")
MOST_BYTES = 64_000_000


@frozen
class FileRow:
    """A site in a file: its place, its values as columns of the schedule, and its faults.

    `options` are the options that the file names.
    """

    place: str
    values: Mapping[str, Any]
    options: Mapping[str, Any]
    problem: str = ""

    @property
    def name(self) -> str:
        """The site's name; empty if there is none."""
        return str(self.values.get("name") or "")


def as_mapping(site: Site, *, with_logins: bool = False) -> dict[str, Any]:
    """All registered values of a site. `with_logins`: with the login in its URL."""
    oai, columns = site.options.oai, row_values(site)
    return {
        **{name: columns[column] for name, column in _COLUMNS.items()},
        "list_url": site.list_url if with_logins or not has_login(site) else without_login(site.list_url),
        "contacts": list(site.contacts),
        "next_harvest": _plain(site.next_harvest),
        "last_harvest": _plain(site.last_harvest),
        "ldappwd": site.ldap_password if is_reference(site.ldap_password) else None,
        **{name: _plain(getattr(site.options, name)) for name in _OWN},
        "package_id_mismatch": site.options.package_id_mismatch or AS_SETTINGS,
        "oai": {name: _plain(value) for name, value in options_shown(oai).items()} if oai else None,
    }


def has_login(site: Site) -> bool:
    """True if the URL of the site has a user name or a password."""
    return "@" in site.list_url.partition("://")[2].partition("/")[0]


def json_text(sites: Iterable[Mapping[str, Any]]) -> str:
    """The file, as JSON."""
    return json.dumps({"format": FORMAT, "sites": list(sites)}, indent=2, ensure_ascii=False) + "\n"


def csv_text(sites: Iterable[Mapping[str, Any]]) -> str:
    """The file, as CSV: no cell can begin a formula."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(CSV_COLUMNS)
    for site in sites:
        flat = {**site, **{f"oai_{name}": value for name, value in (site["oai"] or {}).items()}}
        writer.writerow([_cell(name, flat.get(name)) for name in CSV_COLUMNS])
    return text.getvalue()


def read_sites_file(content: bytes) -> list[FileRow]:
    """The sites in a JSON or CSV file. Raises MetaharvestError for any other file."""
    if len(content) > MOST_BYTES:
        raise MetaharvestError(f"The file has {len(content):,} bytes, and a file of sites has {MOST_BYTES:,} at most.")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise MetaharvestError("The file is not UTF-8 text: save it as UTF-8.") from error
    return _from_json(text) if text.lstrip()[:1] in ("{", "[") else _from_csv(text)


def _from_json(text: str) -> list[FileRow]:
    try:
        stored = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise MetaharvestError(f"The file is not JSON: {one_line(str(error))}.") from None
    if not isinstance(stored, dict) or stored.get("format") != FORMAT or not isinstance(stored.get("sites"), list):
        raise MetaharvestError(f'The file is no export of sites: it must begin with "format": "{FORMAT}".')
    return [_json_row(f"site {number}", site) for number, site in enumerate(stored["sites"], 1)]


def _json_row(place: str, site: object) -> FileRow:
    if not isinstance(site, dict):
        return FileRow(place, {}, {}, "it is no object")
    oai = site.get("oai")
    if oai is not None and not isinstance(oai, dict):
        return FileRow(place, {}, {}, "oai is no object")
    flat = {name: value for name, value in site.items() if name != "oai"}
    flat |= {f"oai_{name}": value for name, value in (oai or {}).items()}
    return _row(f"{place} ({one_line(str(site.get('name')), 100)})", flat, no_oai="oai" in site and oai is None)


def _from_csv(text: str) -> list[FileRow]:
    lines = io.StringIO(text, newline="")
    header = text.split("\n", 1)[0]
    delimiter = max(",;\t", key=header.count)
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    rows: list[FileRow] = []
    begin = 1
    try:
        names = [name.strip().lower() for name in next(reader, [])]
        if "name" not in names:
            raise MetaharvestError(f"The first line names no column `name`. The columns are {', '.join(CSV_COLUMNS)}.")
        if unknown := [name for name in names if name not in CSV_COLUMNS]:
            known = ", ".join(CSV_COLUMNS)
            raise MetaharvestError(
                f"Line 1: there is no column {', '.join(map(one_line, unknown))}. There are {known}."
            )
        begin = reader.line_num + 1
        for cells in reader:
            if any(cell.strip() for cell in cells):
                rows.append(_csv_row(f"line {begin}", names, cells))
            begin = reader.line_num + 1
    except csv.Error as error:
        raise MetaharvestError(f"Line {begin} is not CSV: {error}.") from None
    return rows


def _csv_row(place: str, names: Sequence[str], cells: Sequence[str]) -> FileRow:
    if len(cells) != len(names):
        return FileRow(place, {}, {}, f"it has {len(cells)} values, and the first line names {len(names)} columns")
    flat: dict[str, Any] = {}
    for name, cell in zip(names, cells, strict=True):
        text = cell[1:] if cell.startswith("'") and _FORMULA.match(cell[1:]) else cell
        try:
            flat[name] = _value(name.removeprefix("oai_"), text)
        except ValueError as error:
            return FileRow(place, {}, {}, f"{name} is '{one_line(text, 80)}': {error}")
    asked = [value for name, value in flat.items() if name.startswith("oai_")]
    return _row(place, flat, no_oai="oai_origin" in flat and not any(asked))


def _value(name: str, text: str) -> Any:
    """The value of a cell. Raises ValueError."""
    if name in _LISTS:
        parts = text.split() if name == "sets" else text.replace(";", ",").split(",")
        return [part.strip() for part in parts if part.strip()]
    stripped = text.strip()
    if not stripped:
        return None
    if name in _NUMBERS:
        try:
            return int(stripped)
        except ValueError:
            raise ValueError("it must be a whole number") from None
    if name in _FLAGS:
        if stripped.lower() not in ("yes", "no", "true", "false", "1", "0"):
            raise ValueError("it must be yes or no")
        return stripped.lower() in ("yes", "true", "1")
    return text if name == "name" else stripped


def _row(place: str, flat: Mapping[str, Any], *, no_oai: bool) -> FileRow:
    """A row from named values. A site with a list has no values of a repository."""
    own, asked = set(_OWN), {f"oai_{name}" for name in _OAI}
    if unknown := [name for name in flat if name not in _COLUMNS and name not in own and name not in asked]:
        return FileRow(place, {}, {}, f"there is no value called {', '.join(map(one_line, unknown))}")
    values: dict[str, Any] = {}
    for name, column in _COLUMNS.items():
        if name not in flat:
            continue
        value = flat[name]
        if name == "contacts":
            if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
                return FileRow(place, {}, {}, "contacts is no list of addresses")
            value = ", ".join(value)
        values[column] = _FLAGS[name] if name in _FLAGS and value is None else value
    options = {name: value for name, value in flat.items() if name in own}
    repository = {name.removeprefix("oai_"): value for name, value in flat.items() if name in asked}
    if no_oai or not any(value not in (None, [], False) for value in repository.values()):
        options |= {"oai": None} if no_oai else {}
    else:
        options["oai"] = repository
        if problem := _more_than_one_set(repository.get("sets")):
            return FileRow(place, {}, {}, problem)
    return FileRow(place, values, options)


def _more_than_one_set(sets: object) -> str:
    """The sentence about more than one set of a site; empty if there is at most one."""
    if sets is None or (isinstance(sets, list) and len(sets) <= 1):
        return ""
    if not isinstance(sets, list):
        return "sets is no list"
    named = ", ".join(one_line(str(each), 60) for each in sets[:3]) + (", ..." if len(sets) > 3 else "")
    return (
        f"a site has one set, and this one has {len(sets):,} ({named}): write one site for each set, each with a name"
    )


def stored_options(row: FileRow, before: SiteOptions) -> str | None:
    """The options of a site: values of the file, and for others, values of the schedule."""
    stored: dict[str, Any] = json.loads(options_text(before) or "{}")
    for name, value in row.options.items():
        if name == "oai":
            continue
        stored.pop(name, None)
        if value not in (None, "", [], AS_SETTINGS):
            stored[name] = value
    if "oai" in row.options:
        oai = {**stored.pop("oai", {}), **_as_stored(row.options["oai"])} if row.options["oai"] else {}
        kept = {name: value for name, value in oai.items() if value not in (None, "", [], False)}
        if kept:
            stored["oai"] = kept
    return json.dumps(stored) if stored else None


def _as_stored(asked: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a repository in a file, by the names of stored options."""
    stored = {name: value for name, value in asked.items() if name != "sets"}
    return stored | {"set": next(iter(asked["sets"] or ()), None)} if "sets" in asked else stored


def require_kind(values: Mapping[str, Any], options: str | None) -> Mapping[str, Any]:
    """The values with the source kind that the options imply, where the file names none."""
    if "source_kind" in values and values["source_kind"] is not None:
        return values
    is_repository = "oai" in json.loads(options or "{}")
    return {**values, "source_kind": OAI if is_repository else HARVEST_LIST}


def problem_of(error: MetaharvestError) -> str:
    """The error about a site, in one line, with the names that values have in a file."""
    text = " ".join(str(error).splitlines())
    for name, column in _COLUMNS.items():
        text = text.replace(f"{column} is ", f"{name} is ") if name != column else text
    return one_line(text, 1000)


def _plain(value: object) -> object:
    """A value as JSON has it."""
    if isinstance(value, tuple | list):
        return [str(each) for each in value]
    return value if value is None or isinstance(value, bool | int) else str(value)


def _cell(name: str, value: object) -> str:
    key = name.removeprefix("oai_")
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = _LISTS[key].join(value) if key in _LISTS and isinstance(value, list) else str(value)
    return f"'{text}" if _FORMULA.match(text) else text
