"""The description of a source repository: Identify, its metadata formats, its sets, and the changes in these.

Values are compared, not text: a source repository may write the same values in another way every night.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from itertools import islice
from typing import TypeVar

from lxml import etree

from metaharvest.errors import FetchError, ListError
from metaharvest.model import Finding, Level
from metaharvest.model.lengths import SET_SPEC
from metaharvest.model.mappings import picked
from metaharvest.model.values import frozen
from metaharvest.sources.base import TimeBudget
from metaharvest.sources.oai_pmh.bounds import ADDRESSES, FORMATS, FRIENDS, SETS, URI
from metaharvest.sources.oai_pmh.datestamps import OVERLAP, ahead_of, has_zone, may_be_a_zone, moment
from metaharvest.sources.oai_pmh.protocol import Identity, MetadataFormat, ProtocolError, Set
from metaharvest.sources.oai_pmh.repository import Read, Repository
from metaharvest.sources.oai_pmh.responses import NotOaiResponse, Response, ill_formed, own_text
from metaharvest.text import counted, one_line, without_credentials

Result = TypeVar("Result")

ALL_PAGES = 1000
"""The most pages of a list of sets that are read."""

_MOST_KEPT = 1000
_LONGEST_KEPT = 200_000
"""Characters of sets, or of formats, that are remembered in full; beyond, only their digest is kept."""

_NAMED = 12
"""Formats or sets that a sentence names."""

CLOCK_RIGHT = "The repository's keeper sets the clock of its server right, or of each of them if there are several."
_SHORTEN = "The repository's keeper checks the text there; a harvester needs no such long text, nor that many."
_FRIEND_URLS = ".//{http://www.openarchives.org/OAI/2.0/friends/}friends/{*}baseURL"
_IDENTIFIERS = ".//{*}oai-identifier/{*}repositoryIdentifier"


@frozen
class Description:
    """The description of a source repository. `findings`: its oddities.

    `has_all_sets`: `sets` are complete. `no_sets`: the error, if the sets cannot be fetched.
    """

    identity: Identity
    formats: tuple[MetadataFormat, ...]
    sets: tuple[Set, ...] = ()
    has_all_sets: bool = False
    no_sets: FetchError | ListError | None = None
    findings: tuple[Finding, ...] = ()

    def remembered(self, before: Mapping[str, object]) -> dict[str, object]:
        """The values that the next harvest compares, as JSON; `before` is what was remembered until now."""
        formats = sorted([each.prefix, each.schema, each.namespace] for each in self.formats)
        specs = sorted(each.spec for each in self.sets)
        return {
            **picked(self.identity, "name base_url version granularity deleted_record"),
            "identifiers": self.identity.identifiers or before.get("identifiers"),
            "formats": _digest_of_many(list(map("/".join, formats)), "formats") or formats,
            "sets": _digest_of_many(specs, "sets") or specs if self.has_all_sets else before.get("sets"),
        }

    def warning_of_sets(self) -> Finding | None:
        """The warning for a site that needs no sets, if they cannot be fetched."""
        if self.no_sets is None:
            return None
        why = self.no_sets.findings[0]
        message = f"The repository's sets cannot be fetched (ListSets): {why.message}"
        remedy = "No action is needed if no set is asked for; otherwise the repository's keeper sees in its log why."
        return Finding(why.rule, message, remedy, Level.WARNING)


async def described(repository: Repository, patience: TimeBudget, *, pages: int = ALL_PAGES) -> Description:
    """The description of the source repository, with its robots.txt. Raises FetchError, and ListError.

    Reads at most this number of `pages` of sets. If the sets cannot be fetched, the description has the error.
    """
    identity, findings = await identified(repository, patience)
    asking = _Asking(repository, patience)
    formats = await asking.formats()
    sets: tuple[Set, ...] = ()
    has_all, no_sets = False, None
    try:
        sets, has_all = await asking.sets(pages)
    except (FetchError, ListError) as error:
        no_sets = error
    return Description(identity, formats, sets, has_all, no_sets, (*findings, *asking.findings))


async def identified(repository: Repository, patience: TimeBudget) -> tuple[Identity, tuple[Finding, ...]]:
    """The answer to Identify, and the findings about it and robots.txt. Raises FetchError, and ListError."""
    forbidden = await repository.check_robots()
    asking = _Asking(repository, patience)
    identity = await asking.identity()
    return identity, (*forbidden, *asking.findings, *_clock(identity))


class _Asking:
    """Asks a source repository about itself. Its methods raise FetchError and ListError."""

    def __init__(self, repository: Repository, patience: TimeBudget) -> None:
        self._repository = repository
        self._patience = patience
        self.findings: list[Finding] = []

    async def identity(self) -> Identity:
        identity, answer = await self._ask("Identify", {}, _identity)
        ahead = ahead_of(answer.response_date, answer.date)
        self.findings += _clocks(answer, ahead)
        return replace(identity, response_date=answer.response_date, ahead=ahead)

    async def formats(self) -> tuple[MetadataFormat, ...]:
        (found, left_out), _ = await self._ask("ListMetadataFormats", {}, _formats, none="noMetadataFormats")
        self._note_left_out(left_out, "metadata formats", FORMATS)
        return found

    async def sets(self, pages: int) -> tuple[tuple[Set, ...], bool]:
        """The sets of at most this number of pages; and True if these are all."""
        found: dict[str, Set] = {}
        arguments: dict[str, str] = {}
        left_out, has_all = 0, False
        for _ in range(pages):
            if arguments and (why := self._patience.stop_reason()):
                raise FetchError(why, transient=True)
            before = len(found)
            more, answer = await self._ask("ListSets", arguments, partial(_sets, found=found), none="noSetHierarchy")
            left_out += more
            token = answer.token.text if answer.token else ""
            has_all = not (token or left_out)
            if not token or len(found) in (before, SETS):
                break
            arguments = {"resumptionToken": token}
        self._note_left_out(left_out, "sets", SETS)
        return tuple(found.values()), has_all

    def _note_left_out(self, number: int, what: str, most: int) -> None:
        if number:
            message = (
                f"{number:,} of the repository's {what} were left out: {most:,} are read, each with a name of "
                f"{SET_SPEC:,} characters at most."
            )
            self.findings.append(Finding("oai.too-long", message, _SHORTEN, Level.WARNING))

    async def _ask(
        self, verb: str, arguments: Mapping[str, str], read: Read[Result], none: str = ""
    ) -> tuple[Result, Response]:
        """The result of `read` for an answer, and the answer. `none`: the error that means that there is nothing."""
        try:
            found, answer = await self._repository.short(verb, arguments, self._patience, read)
        except NotOaiResponse as error:
            raise ListError(error.finding) from error
        if answer.damage:
            self.findings.append(ill_formed(answer))
        if answer.errors and none not in [error.code for error in answer.errors]:
            raise ListError(refused(verb, answer.errors))
        return found, answer


def _identity(tree: etree._Element, answer: Response) -> Identity:
    """The content of an answer to Identify, without its dates. Values that are too long are cut."""
    found = tree.find(answer.root.name(answer.verb))
    container = tree if found is None else found

    def every(name: str) -> tuple[str, ...]:
        texts = ((each.text or "").strip()[:URI] for each in container.iterchildren(f"{{*}}{name}"))
        return tuple(map(without_credentials, islice(filter(None, texts), ADDRESSES)))

    def first(name: str) -> str:
        return next(iter(every(name)), "")

    friends = (own_text(each) for each in tree.iterfind(_FRIEND_URLS))
    named = tree.find(_IDENTIFIERS)
    return Identity(
        one_line(first("repositoryName"), 200),
        first("baseURL"),
        answer.root.version,
        every("adminEmail"),
        first("earliestDatestamp"),
        first("deletedRecord"),
        first("granularity"),
        every("compression"),
        tuple(map(without_credentials, islice((url for url in friends if 0 < len(url) <= URI), FRIENDS))),
        identifiers="" if named is None else one_line(own_text(named), 200),
    )


def _formats(tree: etree._Element, answer: Response) -> tuple[tuple[MetadataFormat, ...], int]:
    """The formats of an answer; the number left out."""
    found: list[MetadataFormat] = []
    left_out = 0
    for each in tree.iter(answer.root.name("metadataFormat")):
        values = [_text(each, part, answer) for part in ("metadataPrefix", "schema", "metadataNamespace")]
        if len(found) >= FORMATS or len(values[0]) > SET_SPEC or max(map(len, values)) > URI:
            left_out += 1
        elif values[0]:
            found.append(MetadataFormat(*values))
    return tuple(found), left_out


def _sets(tree: etree._Element, answer: Response, found: dict[str, Set]) -> int:
    """Put the sets of an answer into `found`. Returns the number left out."""
    left_out = 0
    tag, spec_tag, name_tag = answer.root.names("set", "setSpec", "setName")
    for each in tree.iter(tag):
        spec = (each.findtext(spec_tag) or "").strip()
        if not spec or spec in found:
            continue
        if len(spec) > SET_SPEC or len(found) >= SETS:
            left_out += 1
        else:
            found[spec] = Set(spec, one_line((each.findtext(name_tag) or "").strip(), 200))
    return left_out


def _text(element: etree._Element, name: str, answer: Response) -> str:
    return (element.findtext(answer.root.name(name)) or "").strip()


def _clocks(answer: Response, ahead: timedelta) -> Iterator[Finding]:
    """The warning that the source repository's clock is ahead of its web server's, or in another zone.

    A source repository that writes local time with a Z may do so in responseDate, and not in datestamps. A clock that
    is behind by another time may belong to an answer from a proxy.
    """
    is_zone, is_ahead = may_be_a_zone(ahead), ahead > timedelta(0)
    if not (is_zone or ahead > OVERLAP):
        return
    message = (
        f"The repository's clock shows {one_line(answer.response_date, 60)} (responseDate), which is "
        f"{_in_words(abs(ahead))} {'ahead of' if is_ahead else 'behind'} that of its web server "
        f"({one_line(answer.date, 60)}){', as local time would be' if is_zone else ''}."
    )
    if is_ahead:
        message += " Changes are asked for from so much earlier on, as others would be left out."
    zone = "The repository should write responseDate and datestamps in UTC, not in local time."
    yield Finding("oai.clock", message, zone if is_zone else CLOCK_RIGHT, Level.WARNING)


def _in_words(time: timedelta) -> str:
    minutes = round(time.total_seconds() / 60)
    if minutes < 120:
        return counted(minutes, "minute")
    hours = f"{minutes / 60:,.1f}".removesuffix(".0") + " hours"
    return hours if minutes < 2880 else f"{minutes // 1440:,} days"


def _clock(identity: Identity) -> Iterator[Finding]:
    """The oddities of the date that a source repository shows: not a date, or perhaps in another time zone (2.0)."""
    date = identity.response_date
    if moment(date) is None:
        shown = f"is '{one_line(date, 60)}', which is no date" if date else "is missing"
        message = (
            f"The responseDate of the repository's answers {shown}: nothing shows what has changed since a "
            "harvest, and each of them lists everything."
        )
    elif identity.version == "2.0" and not has_zone(date):
        message = (
            f"The repository's clock shows {one_line(date, 60)}, without a zone: responseDate does not say what that "
            "is in UTC, by which changes are asked for. They are asked for from a day before it on."
        )
    else:
        return
    remedy = "The repository should write it in UTC, with a Z: 2026-11-20T03:00:00Z."
    yield Finding("oai.protocol", message, remedy, Level.WARNING)


def missing(description: Description, prefix: str, sets: Sequence[str]) -> Iterator[Finding]:
    """The requested format and sets that the source repository lacks, each with the existing ones.

    Raises FetchError and ListError if sets are requested, and cannot be fetched.
    """
    prefixes = [each.prefix for each in description.formats]
    if prefix not in prefixes:
        message = f"The repository has no metadata format '{one_line(prefix, 60)}'; {_there_are(prefixes)}."
        yield Finding("oai.no-format", message, "Correct the prefix, or have the repository offer this format.")
    if sets and description.no_sets:
        raise description.no_sets
    if not description.has_all_sets:
        return
    specs = [each.spec for each in description.sets]
    known = set(specs)
    for spec in sets:
        # A hierarchy may leave sets out of its list: `a` exists if `a:b` does. DataCite takes a query behind a `~`:
        # https://github.com/IQSS/dataverse/issues/10909
        listed, is_query, _ = spec.rpartition("~")
        is_known = spec in known or (is_query and (not listed or listed in known))
        if not is_known and not any(each.startswith(f"{spec}:") for each in specs):
            message = f"The repository has no set '{one_line(spec, 60)}'; {_there_are(specs)}."
            yield Finding("oai.no-set", message, "Correct the set, or have the repository offer this one.")


def has_other_identifiers(old: Mapping[str, object], new: Mapping[str, object]) -> bool:
    """True if the identifiers of all records have changed since the last harvest, perhaps without new datestamps.

    Seen at https://github.com/EUDAT-B2SHARE/b2share/issues/628.
    """
    before = old.get("identifiers")
    return before is not None and before != new.get("identifiers")


def changes(old: Mapping[str, object], new: Mapping[str, object]) -> Iterator[Finding]:
    """The warnings about changes since the last harvest."""
    for key, what in _COMPARED.items():
        before, now = old.get(key), new.get(key)
        if before == now or (before is None or now is None):
            continue
        message = f"The repository's {what} changed since its last harvest: {_change(before, now)}."
        remedy = "Check if that is meant; if many records are listed again or not at all, ask the repository's keeper."
        yield Finding("oai.repository-changed", message, remedy, Level.WARNING)


_COMPARED = {
    "name": "name",
    "base_url": "base URL",
    "version": "version of the protocol",
    "granularity": "granularity",
    "deleted_record": "way with deleted records (deletedRecord)",
    "identifiers": "repositoryIdentifier, with which identifiers begin,",
    "formats": "list of metadata formats",
    "sets": "list of sets",
}


def _change(before: object, now: object) -> str:
    """Both values; for lists, the new and the removed names."""
    if not (isinstance(before, list) and isinstance(now, list)):
        return f"it was '{one_line(str(before), 200)}', now it is '{one_line(str(now), 200)}'"
    old, new = (["/".join(each) if isinstance(each, list) else str(each) for each in side] for side in (before, now))
    had, has = set(old), set(new)
    named = (("new", [name for name in new if name not in had]), ("gone", [name for name in old if name not in has]))
    return "; ".join(
        f"{word}: {_some([one_line(name, 120) for name in names[:_NAMED]], len(names))}"
        for word, names in named
        if names
    )


def _there_are(names: Sequence[str]) -> str:
    if not names:
        return "it has none at all"
    return "there are " + _some([f"'{one_line(name, 60)}'" for name in names[:_NAMED]], len(names))


def _some(names: Sequence[str], number: int) -> str:
    """The first names, and the number of the others."""
    return ", ".join(names) + (f" and {number - len(names):,} more" if number > len(names) else "")


def _digest_of_many(names: Sequence[str], what: str) -> str:
    """The number of names and a digest, if they are too many to be remembered; otherwise empty."""
    if len(names) <= _MOST_KEPT and sum(map(len, names)) <= _LONGEST_KEPT:
        return ""
    return f"{len(names):,} {what}, {hashlib.sha256(chr(10).join(names).encode()).hexdigest()[:16]}"


def refused(verb: str, errors: Sequence[ProtocolError]) -> Finding:
    """The finding about an answer with errors of the protocol."""
    message = f"The repository refuses {verb}: {', '.join(map(str, errors))}."
    remedy = "Check the format, set and dates that are asked for; if they are right, the repository's log says why."
    return Finding("oai.error", message, remedy)
