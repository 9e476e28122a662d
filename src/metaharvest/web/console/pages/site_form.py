"""The form of a site: its texts from the registered values, and the values of a site from the changed texts. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import date
from enum import StrEnum
from pathlib import Path

from metaharvest.config.field_types import check_email, check_network
from metaharvest.errors import RequestError
from metaharvest.model import Deletions, FullText, Level, ListMethod, Notify, Unit, ValidationLevel
from metaharvest.model.kinds import AS_SETTINGS
from metaharvest.model.mappings import picked
from metaharvest.model.values import frozen
from metaharvest.queries.sites import RegisteredSite
from metaharvest.services.sites import SiteValues, check_group
from metaharvest.services.source_preview import OAI
from metaharvest.web.console.forms import Form

YES_NO = ("yes", "no")


@frozen
class Field:
    """A field of the form; `choices` are the values of a choice, `part` the group of fields that it belongs to."""

    name: str
    label: str
    part: str
    choices: tuple[str | tuple[str, str], ...] = ()
    hint: str = ""
    type: str = "text"


_USUAL = ("", "as usual")
_DAY = "A date, such as 2026-11-30."
FIELDS = (
    Field("name", "Name", "Source", hint="Reports and commands use it."),
    Field("list_url", "Address of the harvest list or repository", "Source", type="url"),
    Field("contacts", "Contacts", "Reports", hint="Email addresses with commas between them: they get the reports."),
    Field("notify", "Contacts get a report", "Reports", tuple(map(str, Notify))),
    Field("every", "Harvest every", "Schedule", type="number"),
    Field("unit", "Unit", "Schedule", tuple(map(str, Unit))),
    Field("next_harvest", "Next harvest", "Schedule", type="date", hint=_DAY),
    Field("enabled", "Is harvested", "Schedule", YES_NO),
    Field("groups", "Groups", "Schedule", hint="Names without blanks, with commas between them."),
    Field("public", "Its documents are published", "Documents", YES_NO),
    Field("validation", "Check of documents", "Documents", (_USUAL, *map(str, ValidationLevel))),
    Field("package_id_mismatch", "A packageId that is not the docid is", "Documents", (AS_SETTINGS, *map(str, Level))),
    Field("deletions", "Records that the source deleted", "Documents", (_USUAL, *map(str, Deletions))),
    Field("max_loss", "Most deletions without confirmation, in percent", "Documents", type="number"),
    Field("full_text", "Files of its outputs", "Documents", (AS_SETTINGS, *map(str, FullText))),
    Field("filters", "File of filters", "Documents", hint="A path on the machine of the harvester."),
    Field("normalize", "File of mappings", "Documents", hint="A path on the machine of the harvester."),
    Field("prefix", "Format (metadataPrefix)", "Requests to the repository"),
    Field("set_spec", "Set", "Requests to the repository", hint="Empty: all records."),
    Field("begin", "From datestamp", "Requests to the repository"),
    Field("until", "Until datestamp", "Requests to the repository"),
    Field("method", "Method", "Requests to the repository", tuple(map(str, ListMethod))),
    Field("full_every", "Full list every, in days", "Requests to the repository", type="number"),
    Field("post", "Requests as forms (POST)", "Requests to the repository", YES_NO),
    Field("origin", "Origin: its name in document ids", "Requests to the repository"),
    Field("allow_networks", "Private networks that may be asked", "Network and login", hint="Such as 10.1.0.0/16."),
    Field("ca_file", "File of trusted certificates", "Network and login"),
    Field("ldap_name", "Login at the target", "Network and login"),
    Field("ldap_password", "Place of its password", "Network and login", hint="A reference, such as env:NAME."),
)
_LABELS = {field.name: field.label for field in FIELDS}
_SAME = (
    "name=site list_url every unit next_harvest notify enabled public ca_file validation filters normalize deletions "
    "max_loss ldap_name=ldapdn ldap_password=ldappwd contacts groups"
)
_OAI = ("prefix", "set_spec", "begin", "until", "method", "full_every", "post", "origin")


def fields_of(site: RegisteredSite) -> tuple[Field, ...]:
    """The fields of the form of this site."""
    return tuple(field for field in FIELDS if site.oai is not None or field.name not in _OAI)


def texts_of(site: RegisteredSite) -> dict[str, str]:
    """The values of a site as the texts of its form."""
    texts = picked(site, _SAME) | {
        "package_id_mismatch": site.package_id_mismatch or AS_SETTINGS,
        "allow_networks": site.allow_networks,
        "full_text": site.full_text or AS_SETTINGS,
    }
    if (oai := site.oai) is not None:
        texts |= picked(oai, "prefix begin until method full_every post origin")
        texts["set_spec"] = next(iter(oai.sets), None)
    return {name: shown_value(value) for name, value in texts.items()}


FORMER = "former_"
"""The prefix of hidden fields, which have the texts at the time when the person opened the form."""


def changed_texts(form: Form, site: RegisteredSite) -> dict[str, str]:
    """The fields of a form that the person has changed, and whose texts differ from the values of the site."""
    now = texts_of(site)
    given = {name: form.text(name) for name in now if form.is_set(name)}
    return {name: text for name, text in given.items() if text not in (now[name], form.text(FORMER + name, now[name]))}


def require_unchanged(form: Form, names: Iterable[str], site: RegisteredSite) -> None:
    """Raises RequestError if another person has changed one of these fields since this person got the form."""
    now = texts_of(site)
    for name in names:
        if form.text(FORMER + name, now[name]) != now[name].strip():
            value = f"'{now[name]}'" if now[name] else "empty"
            said = f"another person has changed it since you opened the form. It is now {value}."
            raise RequestError.about(name, f"{_LABELS[name]}: {said}")


def values_from(texts: Mapping[str, str], site: RegisteredSite, today: date) -> SiteValues:
    """The values that these texts say. Raises RequestError with a sentence for each wrong one."""
    values: dict[str, object] = {}
    problems: list[str] = []
    wrong: dict[str, str] = {}
    for name, text in texts.items():
        try:
            values |= _value(name, text, site, today)
        except (ValueError, RequestError) as error:
            mistake = _mistake(name, _LABELS[name], error)
            problems.append(str(mistake))
            wrong |= mistake.fields
    if problems:
        raise RequestError("\n".join(problems), wrong)
    return SiteValues(**values)  # type: ignore[arg-type]


def parsed_groups(text: str) -> tuple[str, ...]:
    """The names of groups in a text. Raises RequestError."""
    try:
        return tuple(dict.fromkeys(map(check_group, split_parts(text))))
    except ValueError as error:
        raise RequestError(f"{error}.") from None


def _value(name: str, text: str, site: RegisteredSite, today: date) -> dict[str, object]:
    if name == "list_url":
        is_repository = site.oai is not None or site.source_kind == OAI
        return {"base_url" if is_repository else "list_url": _needed(text, "give an address")}
    if name == "groups":
        wanted, there = parsed_groups(text), site.groups
        return {
            "add_groups": tuple(each for each in wanted if each not in there),
            "remove_groups": tuple(each for each in there if each not in wanted),
        }
    if name == "next_harvest":
        return {name: day_in(text, today) if text else None}
    if name in _PARSERS:
        return {name: _PARSERS[name](text)}
    return {name: text or None}


def _addresses(text: str) -> tuple[str, ...]:
    """The email addresses in a text, one at least. Raises RequestError, or ValueError for a wrong address."""
    addresses = split_parts(text)
    if not addresses:
        raise RequestError("give at least one address, or nobody gets the reports")
    return tuple(map(check_email, addresses))


def day_in(text: str, today: date) -> date:
    """The day in a text, today or later. Raises RequestError."""
    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise RequestError(f"'{text:.40}' is not a date; write it as {today}") from None
    if day < today:
        raise RequestError(f"{day} is past; give today, {today}, or a later day")
    return day


def _number_from(least: int, most: int) -> Callable[[str], int]:
    """A parser of numbers from the least to the most."""

    def number(text: str) -> int:
        if not re.fullmatch("[0-9]{1,9}", text) or not least <= int(text) <= most:
            raise RequestError(f"'{text:.20}' is not a number from {least} to {most:,}")
        return int(text)

    return number


def _yes(text: str) -> bool:
    if text not in YES_NO:
        raise RequestError("choose yes or no")
    return text == "yes"


def _choice_of(kind: type[StrEnum]) -> Callable[[str], StrEnum]:
    """A parser of the values of this kind."""

    def choice(text: str) -> StrEnum:
        try:
            return kind(text)
        except ValueError:
            raise RequestError(f"choose one of: {', '.join(map(str, kind))}") from None

    return choice


_PARSERS: Mapping[str, Callable[[str], object]] = {
    "name": lambda text: _needed(text, "give a name"),
    "contacts": _addresses,
    "groups": parsed_groups,
    "every": _number_from(1, 99),
    "unit": _choice_of(Unit),
    "notify": _choice_of(Notify),
    "method": _choice_of(ListMethod),
    "enabled": _yes,
    "public": _yes,
    "post": _yes,
    "max_loss": _number_from(0, 100),
    "full_every": lambda text: _number_from(1, 9999)(text) if text else None,
    "validation": lambda text: ValidationLevel(text) if text else None,
    "deletions": lambda text: Deletions(text) if text else Deletions.DELETE,
    "full_text": lambda text: None if text in ("", AS_SETTINGS) else FullText(text),
    "package_id_mismatch": lambda text: None if text in ("", AS_SETTINGS) else Level(text),
    "allow_networks": lambda text: tuple(map(check_network, split_parts(text))),
    "ca_file": lambda text: Path(text) if text else None,
    "filters": lambda text: Path(text) if text else None,
    "normalize": lambda text: Path(text) if text else None,
}


def value_of(name: str, text: str, label: str = "", parse: Callable[[str], object] | None = None) -> object:
    """The value in the text of the field with this name. Raises RequestError about the field.

    `label` and `parse` are those of a form in which they differ.
    """
    try:
        return (parse or _PARSERS[name])(text)
    except (ValueError, RequestError) as error:
        raise _mistake(name, label or _LABELS[name], error) from None


def _mistake(name: str, label: str, error: Exception) -> RequestError:
    """The error about the field with this name, from the error of its parser."""
    sentence = f"{str(error).rstrip('.')}."
    return RequestError(f"{label}: {sentence}", {name: sentence[:1].upper() + sentence[1:]})


def _needed(text: str, sentence: str) -> str:
    if not text:
        raise RequestError(sentence)
    return text


def split_parts(text: str) -> list[str]:
    """The parts of a text with commas, semicolons or ends of lines between them."""
    return [part.strip() for part in re.split("[,;\n]", text) if part.strip()]


def shown_value(value: object) -> str:
    """A value of a site as text; empty if there is none."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    if isinstance(value, date):
        return value.isoformat()
    return "" if value is None else str(value)
