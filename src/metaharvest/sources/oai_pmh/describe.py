"""What a repository says of itself: Identify, its metadata formats and its sets; and what of that has changed.

It is compared as values, not as text: a repository may write the same in another way every night.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from itertools import islice
from typing import TypeVar

from lxml import etree

from metaharvest.errors import FetchError, ListError
from metaharvest.model import Finding, Level
from metaharvest.model.lengths import SET_SPEC
from metaharvest.sources.base import Patience
from metaharvest.sources.oai_pmh.answers import Answer, NoAnswer, ill_formed, local_name, own_text
from metaharvest.sources.oai_pmh.bounds import ADDRESSES, FORMATS, FRIENDS, SETS, URI
from metaharvest.sources.oai_pmh.datestamps import OVERLAP, ahead_of, has_zone, may_be_a_zone, moment
from metaharvest.sources.oai_pmh.protocol import Identity, MetadataFormat, ProtocolError, Set
from metaharvest.sources.oai_pmh.repository import Read, Repository
from metaharvest.text import one_line

Result = TypeVar("Result")

_MOST_PAGES = 1000
_MOST_KEPT = 1000
_LONGEST_KEPT = 200_000
"""Characters of sets, or of formats, that are remembered in full; beyond, only their digest is kept."""

_NAMED = 12
"""Formats or sets that a sentence names."""

CLOCK_RIGHT = "The repository's keeper sets the clock of its server right, or of each of them if there are several."


@dataclass(frozen=True, slots=True)
class Description:
    """What a repository says of itself; `sets` is None if they are not known. `findings`: what is odd there."""

    identity: Identity
    formats: tuple[MetadataFormat, ...]
    sets: tuple[Set, ...] | None = None
    findings: tuple[Finding, ...] = ()

    def remembered(self, before: Mapping[str, object]) -> dict[str, object]:
        """What the next harvest compares it with, as JSON; `before` is what was remembered until now."""
        identity = self.identity
        specs = sorted(each.spec for each in self.sets or ())
        sets = _digest(specs) if sum(map(len, specs)) > _LONGEST_KEPT or len(specs) > _MOST_KEPT else specs
        formats = sorted([each.prefix, each.schema, each.namespace] for each in self.formats)
        is_long = len(formats) > _MOST_KEPT or sum(len(part) for each in formats for part in each) > _LONGEST_KEPT
        return {
            "name": identity.name,
            "base_url": identity.base_url,
            "version": identity.version,
            "granularity": identity.granularity,
            "deleted_record": identity.deleted_record,
            "formats": _digest(["/".join(each) for each in formats], "formats") if is_long else formats,
            "sets": before.get("sets") if self.sets is None else sets,
        }


async def described(repository: Repository, patience: Patience, *, sets: bool, if_had: bool = False) -> Description:
    """What the repository says of itself, and its robots.txt of harvesters. Raises FetchError, and ListError.

    `sets`: all of them are asked for; otherwise as many as one answer has, and only if those are all. `if_had`: if
    they cannot be had, that is a warning.
    """
    identity, findings = await identified(repository, patience)
    try:
        asking = _Asking(repository, patience)
        formats = await asking.formats()
        found = await (asking.sets_if_had() if if_had else asking.sets()) if sets else await asking.few_sets()
        return Description(identity, formats, found, (*findings, *asking.findings))
    except NoAnswer as error:
        raise ListError(error.finding) from error


async def identified(repository: Repository, patience: Patience) -> tuple[Identity, tuple[Finding, ...]]:
    """What a repository says to Identify, and its robots.txt of harvesters. Raises FetchError, and ListError."""
    forbidden = await repository.heed_robots()
    try:
        asking = _Asking(repository, patience)
        identity = await asking.identity()
    except NoAnswer as error:
        raise ListError(error.finding) from error
    return identity, (*forbidden, *asking.findings, *_clock(identity))


class _Asking:
    """Asks a repository about itself. Its methods raise FetchError, NoAnswer and ListError."""

    def __init__(self, repository: Repository, patience: Patience) -> None:
        self._repository = repository
        self._patience = patience
        self.findings: list[Finding] = []

    async def identity(self) -> Identity:
        """What the repository says of itself. Raises FetchError, and ListError."""
        (identity, too_long), answer = await self._ask("Identify", {}, _identity)
        _refuse_errors(answer)
        if too_long:
            message = (
                f"{too_long:,} values of the repository's Identify are longer, or more, than are kept, and were cut."
            )
            self.findings.append(Finding("oai.too-long", message, _SHORTEN, Level.WARNING))
        return replace(identity, response_date=answer.response_date, ahead=self._ahead(answer))

    def _ahead(self, answer: Answer) -> timedelta:
        """By how much the repository's clock is ahead of its web server's, by which datestamps may go.

        Whoever writes local time with a Z may do so in responseDate, and not in datestamps. One that is behind by
        anything else may be that of an answer which a proxy has kept.
        """
        ahead = ahead_of(answer.response_date, answer.date)
        is_zone, is_ahead = may_be_a_zone(ahead), ahead > timedelta(0)
        if is_zone or ahead > OVERLAP:
            message = (
                f"The repository's clock shows {one_line(answer.response_date, 60)} (responseDate), which is "
                f"{_in_words(abs(ahead))} {'ahead of' if is_ahead else 'behind'} that of its web server "
                f"({one_line(answer.date, 60)})"
            )
            message += ", as local time would be." if is_zone else "."
            if is_ahead:
                message += " Changes are asked for from so much earlier on, as others would be left out."
            remedy = CLOCK_RIGHT
            if is_zone:
                remedy = "The repository's keeper has responseDate and datestamps written in UTC, not in local time."
            self.findings.append(Finding("oai.clock", message, remedy, Level.WARNING))
        return ahead

    async def formats(self) -> tuple[MetadataFormat, ...]:
        (found, too_long), answer = await self._ask("ListMetadataFormats", {}, _formats)
        if any(error.code == "noMetadataFormats" for error in answer.errors):
            return ()
        _refuse_errors(answer)
        self._note_too_long(too_long, "metadata formats", FORMATS)
        return found

    async def sets(self) -> tuple[Set, ...]:
        """All of them, over all pages; none if it has none."""
        found: dict[str, Set] = {}
        arguments: dict[str, str] = {}
        too_long = 0
        for _ in range(_MOST_PAGES):
            if why := self._patience.heed():
                raise FetchError(why, transient=True)
            before = len(found)
            token, more = await self._some_sets(arguments, found)
            too_long += more
            if not token or len(found) == before or len(found) >= SETS:
                break
            arguments = {"resumptionToken": token}
        self._note_too_long(too_long, "sets", SETS)
        return tuple(found.values())

    def _note_too_long(self, number: int, what: str, most: int) -> None:
        if number:
            message = (
                f"{number:,} of the repository's {what} were left out: {most:,} are read, each with a name of "
                f"{SET_SPEC:,} characters at most."
            )
            self.findings.append(Finding("oai.too-long", message, _SHORTEN, Level.WARNING))

    async def sets_if_had(self) -> tuple[Set, ...] | None:
        """All of them; None, and a warning, if they cannot be had."""
        try:
            return await self.sets()
        except (FetchError, NoAnswer, ListError) as error:
            why = error.finding if isinstance(error, NoAnswer) else error.findings[0]
        message = f"The repository's sets cannot be had (ListSets): {why.message}"
        remedy = (
            "Nothing is to be done where no set is asked for; otherwise the repository's keeper sees in its log why."
        )
        self.findings.append(Finding(why.rule, message, remedy, Level.WARNING))
        return None

    async def few_sets(self) -> tuple[Set, ...] | None:
        """All of them, if one answer has them all; None if it has not, or there is none."""
        found: dict[str, Set] = {}
        try:
            token, too_long = await self._some_sets({}, found)
        except (FetchError, NoAnswer, ListError):
            return None
        return None if token or too_long else tuple(found.values())

    async def _some_sets(self, arguments: Mapping[str, str], found: dict[str, Set]) -> tuple[str, int]:
        """Put the sets of one answer into `found`. Returns the token for the next answer, and the number left out."""
        too_long, answer = await self._ask("ListSets", arguments, partial(_sets, found=found))
        if any(error.code == "noSetHierarchy" for error in answer.errors):
            return "", 0
        _refuse_errors(answer)
        return answer.token.text if answer.token else "", too_long

    async def _ask(self, verb: str, arguments: Mapping[str, str], read: Read[Result]) -> tuple[Result, Answer]:
        found, answer = await self._repository.short(verb, arguments, self._patience, read)
        if answer.damage:
            self.findings.append(ill_formed(answer))
        return found, answer


def _identity(tree: etree._Element, answer: Answer) -> tuple[Identity, int]:
    """The content of an answer to Identify, without its dates; the number of values left out or cut."""
    texts, too_long = _texts(_container(tree, answer))

    def one(name: str) -> str:
        return next(iter(texts.get(name, ())), "")

    return Identity(
        one_line(one("repositoryName"), 200),
        one("baseURL"),
        answer.root.version,
        tuple(texts.get("adminEmail", ())),
        one("earliestDatestamp"),
        one("deletedRecord"),
        one("granularity"),
        tuple(texts.get("compression", ())),
        tuple(_friends(tree)),
    ), too_long


def _formats(tree: etree._Element, answer: Answer) -> tuple[tuple[MetadataFormat, ...], int]:
    """The formats of an answer; the number left out."""
    name = answer.root.name
    parts = ("metadataPrefix", "schema", "metadataNamespace")
    found: list[MetadataFormat] = []
    too_long = 0
    for each in tree.iter(name("metadataFormat")):
        values = [_text(each, name(part)) for part in parts]
        if len(found) >= FORMATS or len(values[0]) > SET_SPEC or max(map(len, values)) > URI:
            too_long += 1
        elif values[0]:
            found.append(MetadataFormat(*values))
    return tuple(found), too_long


def _sets(tree: etree._Element, answer: Answer, found: dict[str, Set]) -> int:
    """Put the sets of an answer into `found`. Returns the number left out."""
    name = answer.root.name
    too_long = 0
    for each in tree.iter(name("set")):
        spec = _text(each, name("setSpec"))
        if len(spec) > SET_SPEC or len(found) >= SETS:
            too_long += spec not in found
        elif spec:
            found.setdefault(spec, Set(spec, one_line(_text(each, name("setName")), 200)))
    return too_long


def _in_words(time: timedelta) -> str:
    minutes = round(time.total_seconds() / 60)
    if minutes < 120:
        return f"{minutes} minutes"
    hours = f"{minutes / 60:,.1f}".removesuffix(".0") + " hours"
    return hours if minutes < 2880 else f"{minutes // 1440:,} days"


def _clock(identity: Identity) -> Iterator[Finding]:
    """What is odd about the date that a repository shows: it is none, or, in 2.0, it may be that of another zone."""
    date = identity.response_date
    if moment(date) is None:
        shown = f"is '{one_line(date, 60)}', which is no date" if date else "is missing"
        message = (
            f"The responseDate of the repository's answers {shown}: it cannot be told what has changed since a "
            "harvest, and each of them lists everything."
        )
    elif identity.version == "2.0" and not has_zone(date):
        message = (
            f"The repository's clock shows {one_line(date, 60)}, without a zone: responseDate does not say what that "
            "is in UTC, by which changes are asked for. They are asked for from a day before it on."
        )
    else:
        return
    remedy = "The repository's keeper has it written in UTC, with a Z: 2026-11-20T03:00:00Z."
    yield Finding("oai.protocol", message, remedy, Level.WARNING)


def missing(description: Description, prefix: str | None, sets: Sequence[str]) -> Iterator[Finding]:
    """What is to be asked for and is not there, each with what there is; no prefix: the sets alone."""
    prefixes = [each.prefix for each in description.formats]
    if prefix is not None and prefix not in prefixes:
        message = f"The repository has no metadata format '{one_line(prefix, 60)}'; {_there_are(prefixes)}."
        yield Finding("oai.no-format", message, "Correct the prefix, or have the repository offer this format.")
    if description.sets is None:
        return
    specs = [each.spec for each in description.sets]
    known = set(specs)
    for spec in sets:
        # Not every set of a hierarchy need be listed: `a` is there where `a:b` is.
        if spec not in known and not any(each.startswith(f"{spec}:") for each in specs):
            message = f"The repository has no set '{one_line(spec, 60)}'; {_there_are(specs)}."
            yield Finding("oai.no-set", message, "Correct the set, or have the repository offer this one.")


def changes(old: Mapping[str, object], new: Mapping[str, object]) -> Iterator[Finding]:
    """What the repository says otherwise than the last time."""
    for key, (what, told) in _COMPARED.items():
        before, now = old.get(key), new.get(key)
        if before == now or (before is None or now is None):
            continue
        message = f"The repository's {what} changed since its last harvest: {told(before, now)}."
        remedy = "See whether that is meant; if much is listed anew or not at all, ask the repository's keeper."
        yield Finding("oai.repository-changed", message, remedy, Level.WARNING)


def _refuse_errors(answer: Answer) -> None:
    if answer.errors:
        raise ListError(refused(answer.verb, answer.errors))


def refused(verb: str, errors: Sequence[ProtocolError]) -> Finding:
    """The repository answered with errors of the protocol."""
    message = f"The repository refuses {verb}: {', '.join(map(str, errors))}."
    remedy = "Check the format, set and dates that are asked for; if they are right, the repository's log says why."
    return Finding("oai.error", message, remedy)


def _text(element: etree._Element, name: str) -> str:
    return (element.findtext(name) or "").strip()


def _container(tree: etree._Element, answer: Answer) -> etree._Element:
    found = tree.find(answer.root.name(answer.verb))
    return tree if found is None else found


def _texts(container: etree._Element) -> tuple[dict[str, list[str]], int]:
    """The texts of the children, by local name; the number left out or cut."""
    found: dict[str, list[str]] = {name: [] for name in _OF_IDENTIFY}
    too_long = 0
    for child in container.iterchildren(*(f"{{*}}{name}" for name in _OF_IDENTIFY)):
        text = child.text.strip() if child.text else ""
        texts = found[local_name(child)]
        too_long += len(text) > URI or (bool(text) and len(texts) >= ADDRESSES)
        if text and len(texts) < ADDRESSES:
            texts.append(text[:URI])
    return found, too_long


_OF_IDENTIFY = (
    *("repositoryName", "baseURL", "adminEmail", "earliestDatestamp", "deletedRecord"),
    *("granularity", "compression"),
)


def _friends(tree: etree._Element) -> Iterator[str]:
    urls = tree.iterfind(f".//{_FRIENDS}friends/{{*}}baseURL")
    return islice((url for each in urls if 0 < len(url := own_text(each)) <= URI), FRIENDS)


_FRIENDS = "{http://www.openarchives.org/OAI/2.0/friends/}"
_SHORTEN = "The repository's keeper looks what is written there; a harvester needs none of it so long, or so often."


def _there_are(names: Sequence[str]) -> str:
    if not names:
        return "it has none at all"
    shown = ", ".join(f"'{one_line(name, 60)}'" for name in names[:_NAMED])
    return f"there are {shown}" + (f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else "")


def _digest(specs: Sequence[str], what: str = "sets") -> str:
    return f"{len(specs):,} {what}, {hashlib.sha256(chr(10).join(specs).encode()).hexdigest()[:16]}"


def _value_change(before: object, now: object) -> str:
    return f"it was '{one_line(str(before), 200)}', now it is '{one_line(str(now), 200)}'"


def _list_change(before: object, now: object) -> str:
    """Of formats, or of sets: which are new, which are gone."""
    if not (isinstance(before, list) and isinstance(now, list)):
        return _value_change(before, now)
    old, new = (["/".join(each) if isinstance(each, list) else str(each) for each in side] for side in (before, now))
    had, has = set(old), set(new)
    named = (("new", [name for name in new if name not in had]), ("gone", [name for name in old if name not in has]))
    parts = (
        f"{word}: {', '.join(one_line(name, 120) for name in names[:_NAMED])}"
        + (f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else "")
        for word, names in named
        if names
    )
    return "; ".join(parts)


_COMPARED: dict[str, tuple[str, Callable[[object, object], str]]] = {
    "name": ("name", _value_change),
    "base_url": ("base URL", _value_change),
    "version": ("version of the protocol", _value_change),
    "granularity": ("granularity", _value_change),
    "deleted_record": ("way with deleted records (deletedRecord)", _value_change),
    "formats": ("list of metadata formats", _list_change),
    "sets": ("list of sets", _list_change),
}
