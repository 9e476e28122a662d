"""The arguments of a request to the provider, checked. Pure. Rules: OAI-PMH 2.0, sections 3.6 and 4."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from metaharvest.model.values import frozen
from metaharvest.text import only_xml

LISTS = ("ListIdentifiers", "ListRecords")


@frozen
class ProtocolError:
    """An error of the protocol: its code, and a sentence for people."""

    code: str
    message: str


class Refused(Exception):
    """A request that is answered with errors of the protocol. `echoed` are the arguments that the answer repeats."""

    def __init__(self, *errors: ProtocolError, echoed: dict[str, str] | None = None) -> None:
        super().__init__(*errors)
        self.errors = errors
        self.echoed = echoed or {}


@frozen
class Request:
    """A request without a mistake in its arguments. `since` and `until` are whole seconds, inclusive."""

    verb: str
    arguments: dict[str, str]
    since: datetime | None = None
    until: datetime | None = None

    @property
    def identifier(self) -> str:
        """The identifier; empty if there is none."""
        return self.arguments.get("identifier", "")

    @property
    def prefix(self) -> str:
        """The metadataPrefix; empty if there is none."""
        return self.arguments.get("metadataPrefix", "")

    @property
    def set_spec(self) -> str | None:
        """The set; None if there is none."""
        return self.arguments.get("set")

    @property
    def token(self) -> str | None:
        """The resumptionToken; None if there is none."""
        return self.arguments.get("resumptionToken")


@frozen
class _Verb:
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    has_token: bool = False


_LIST = _Verb(("metadataPrefix",), ("from", "until", "set"), has_token=True)
_VERBS = {
    "Identify": _Verb(),
    "ListMetadataFormats": _Verb((), ("identifier",)),
    "ListSets": _Verb(has_token=True),
    "GetRecord": _Verb(("identifier", "metadataPrefix")),
    **dict.fromkeys(LISTS, _LIST),
}
_UNRESERVED = r"[A-Za-z0-9\-_.!~*'()]+"
_PREFIX = re.compile(_UNRESERVED)
_SET = re.compile(rf"{_UNRESERVED}(:{_UNRESERVED})*")
_URI = re.compile(r"([A-Za-z0-9\-_.!~*'();/?:@&=+$,#]|%[0-9A-Fa-f]{2})+")
_FORMS: Mapping[str, Callable[[str], object]] = {
    "metadataPrefix": lambda value: _PREFIX.fullmatch(value),
    "set": lambda value: _SET.fullmatch(value),
    "identifier": lambda value: _URI.fullmatch(value),
}
"""The form of values, by argument. An identifier is a URI, as in the guidelines for identifiers."""

DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
SECOND = re.compile(r"\d{4}-\d\d-\d\dT(?!24)\d\d:\d\d:\d\dZ", re.ASCII)
"""The two forms of a date in the protocol."""

_LONGEST = 4096
"""Characters of a value."""

_MOST_MISTAKES = 20
"""Mistakes that an answer names."""


def read_request(pairs: Sequence[tuple[str, str]]) -> Request:
    """The request with these arguments. Raises Refused, with the first of its mistakes."""
    verbs = [value for name, value in pairs if name == "verb"]
    if len(verbs) != 1 or verbs[0] not in _VERBS:
        raise Refused(ProtocolError("badVerb", _about_verb(verbs)))
    checked = _Checked(verbs[0], [pair for pair in pairs if pair[0] != "verb"])
    if checked.mistakes:
        raise Refused(*(ProtocolError("badArgument", each) for each in checked.mistakes[:_MOST_MISTAKES]))
    return Request(checked.verb, checked.arguments, checked.since, checked.until)


@dataclass
class _Checked:
    verb: str
    pairs: list[tuple[str, str]]
    mistakes: list[str] = field(default_factory=list)
    arguments: dict[str, str] = field(default_factory=dict)
    since: datetime | None = None
    until: datetime | None = None

    def __post_init__(self) -> None:
        self._check_names()
        for name, value in self.arguments.items():
            self._check_value(name, value)
        if not self.mistakes:
            self._read_dates()

    def _check_names(self) -> None:
        verb = _VERBS[self.verb]
        known = (*verb.required, *verb.optional, *(("resumptionToken",) if verb.has_token else ()))
        for name, number in Counter(name for name, _ in self.pairs).items():
            if name not in known:
                self.mistakes.append(f"{self.verb} has no argument {shown(name)}.")
            elif number > 1:
                self.mistakes.append(f"The argument {name} is there {number} times.")
        self.arguments = {name: value for name, value in self.pairs if name in known}
        if "resumptionToken" in self.arguments:
            if len(self.arguments) > 1:
                self.mistakes.append("resumptionToken is an exclusive argument: no other goes with it.")
            return
        self.mistakes += [f"The argument {each} is missing." for each in verb.required if each not in self.arguments]

    def _check_value(self, name: str, value: str) -> None:
        form = _FORMS.get(name)
        if not value:
            self.mistakes.append(f"The argument {name} is empty.")
        elif len(value) > _LONGEST:
            self.mistakes.append(f"The argument {name} has more than {_LONGEST:,} characters.")
        elif only_xml(value) != value or (form and not form(value)):
            self.mistakes.append(f"{shown(value)} cannot be the value of {name}.")

    def _read_dates(self) -> None:
        given = [name for name in ("from", "until") if name in self.arguments]
        for name in given:
            if (read := read_date(self.arguments[name], is_end=name == "until")) is None:
                self.mistakes.append(
                    f"{shown(self.arguments[name])} cannot be the value of {name}: write a date that exists, as "
                    "YYYY-MM-DD or, in UTC, as YYYY-MM-DDThh:mm:ssZ."
                )
            elif name == "from":
                self.since = read
            else:
                self.until = read
        if len(given) < 2 or self.mistakes:
            return
        if len({len(self.arguments[name]) for name in given}) > 1:
            self.mistakes.append("from and until have different granularities.")
        elif self.since and self.until and self.since > self.until:
            self.mistakes.append("from is after until.")


def shown(value: str) -> str:
    """A value from outside, for a message: not too long, only characters that XML has."""
    cleaned = only_xml(value)
    return f"'{cleaned[:100]}{'…' if len(cleaned) > 100 else ''}'"


def read_date(text: str, *, is_end: bool = False) -> datetime | None:
    """The first or the last second of what the text says; None if it is no date."""
    try:
        if DAY.fullmatch(text):
            day = datetime.fromisoformat(text).replace(tzinfo=UTC)
            return day + timedelta(days=1, seconds=-1) if is_end and day.year < 9999 else day
        if SECOND.fullmatch(text):
            return datetime.fromisoformat(text)
    except ValueError:
        pass
    return None


def _about_verb(verbs: Sequence[str]) -> str:
    known = f"The verbs are {', '.join(_VERBS)}."
    if not verbs:
        where = "write it into the query, or send it by POST in a form (application/x-www-form-urlencoded)"
        return f"The argument verb is missing: {where}. {known}"
    return "The argument verb is repeated." if len(verbs) > 1 else f"There is no verb {shown(verbs[0])}. {known}"
