"""Short requests after a list: does the source repository respect `from`, and how many records does it have?

Each of them requests the first page of one ListIdentifiers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import timedelta
from enum import Enum, auto

from lxml import etree

from metaharvest.errors import FetchError
from metaharvest.model import Finding, Level, OaiOptions
from metaharvest.model.values import frozen
from metaharvest.sources.base import TimeBudget
from metaharvest.sources.oai_pmh.datestamps import OVERLAP, is_proper, moment, written
from metaharvest.sources.oai_pmh.protocol import Identity, says_deleted
from metaharvest.sources.oai_pmh.repository import Repository
from metaharvest.sources.oai_pmh.responses import NotOaiResponse, Response, own_text
from metaharvest.sources.oai_pmh.windows import Window
from metaharvest.text import one_line

FROM = "oai.from"
CHECK_EVERY = timedelta(days=30)
"""By the source repository's clock. `from` is checked after each full list, and at this interval."""

_DAY = timedelta(days=1)
_ALL = Window()


@frozen
class Newest:
    """The newest known record that is not deleted. Empty: none is known."""

    datestamp: str = ""
    identifier: str = ""

    def or_newer(self, datestamp: str, identifier: str, now: str) -> Newest:
        """The newer one of this and another record. A record later than `now` does not count."""
        if datestamp <= self.datestamp or not is_proper(datestamp) or datestamp > now[: len(datestamp)]:
            return self
        return Newest(datestamp, identifier)


@frozen
class FirstPage:
    """The first page of a list of identifiers. `size`: the announced number of records; None: the page has none."""

    datestamps: Mapping[str, str]
    size: int | None
    has_more: bool

    def newest(self, now: str) -> Newest:
        """The newest record of the page, by the source repository's clock."""
        found = Newest()
        for name, stamp in self.datestamps.items():
            found = found.or_newer(stamp, name, now)
        return found


class From(Enum):
    """How a source repository respects `from`: WELL, without its own moment, not at all, or with another date.

    Seen at https://github.com/ilri/DSpace/issues/63, https://github.com/inveniosoftware/invenio-app-rdm/issues/2153 and
    https://github.com/artefactual/atom/issues/893.
    """

    WELL = auto()
    EXCLUSIVE = auto()
    IGNORED = auto()
    OFF = auto()


@frozen
class Probed:
    """The results of the probes. `in_all`: the number of all records in the source repository; None: not requested.

    The last full list announced `in_all_before` records. `newest` is the newest known record. `how`: how the source
    repository respects `from`; None: not tried.
    """

    findings: tuple[Finding, ...] = ()
    in_all: int | None = None
    in_all_before: int = 0
    newest: Newest = field(default_factory=Newest)
    how: From | None = None


class Probes:
    """Sends short requests to one source repository, in version 2.0. `in_days`: it refuses seconds."""

    def __init__(
        self, repository: Repository, options: OaiOptions, identity: Identity, patience: TimeBudget, *, in_days: bool
    ) -> None:
        self._repository = repository
        self._options = options
        self._patience = patience
        self._has_seconds = identity.has_seconds and not in_days

    async def first_page(self, window: Window = _ALL) -> FirstPage | None:
        """The first page of the site's list in this window; None if the request fails."""
        set_spec = self._options.set_spec or ""
        arguments = {"metadataPrefix": self._options.prefix, "set": set_spec, **window.arguments()}
        try:
            (found, number), answer = await self._repository.short("ListIdentifiers", arguments, self._patience, _named)
        except (FetchError, NotOaiResponse):
            return None
        if any(error.code != "noRecordsMatch" for error in answer.errors) or answer.damage:
            return None
        token = answer.token
        has_more = token is not None and bool(token.text)
        return FirstPage(found, (token.size if token else None) or (None if has_more else number), has_more)

    async def check_from(self, newest: Newest) -> tuple[From, Finding | None]:
        """Try `from` with the newest known record. The finding says what is wrong."""
        stamp = newest.datestamp if self._has_seconds else newest.datestamp[:10]
        page = await self.first_page(Window(stamp))
        if page is None:
            return From.WELL, None
        how = _judged(page, newest, stamp)
        if how is From.OFF and (earlier := self._earlier(stamp)):
            # Harvests use an overlap: without the moment of `from`, no record is lost.
            before = await self.first_page(Window(earlier))
            how = From.EXCLUSIVE if before and newest.identifier in before.datestamps else how
        if how is From.OFF and not await self._still_has(newest):
            return From.WELL, None
        return how, _finding(how, newest, stamp, page)

    async def _still_has(self, newest: Newest) -> bool:
        """True if the record still has this datestamp; in a restored source repository it has an older one."""
        arguments = {"identifier": newest.identifier, "metadataPrefix": self._options.prefix}
        try:
            (found, _), _ = await self._repository.short("GetRecord", arguments, self._patience, _named)
        except (FetchError, NotOaiResponse):
            return False
        return found.get(newest.identifier) == newest.datestamp

    def _earlier(self, stamp: str) -> str:
        when = moment(stamp)
        overlap = OVERLAP if self._has_seconds else _DAY
        return written(when - overlap, seconds=self._has_seconds) if when else ""


def is_due(last: str, now: str) -> bool:
    """True if the last check of `from` is CHECK_EVERY ago or more."""
    before, today = moment(last), moment(now)
    return before is None or today is None or today - before >= CHECK_EVERY


def _judged(page: FirstPage, newest: Newest, stamp: str) -> From:
    window = Window(stamp)
    far = [each for each in page.datestamps.values() if window.is_far(each)]
    if far and 2 * len(far) >= len(page.datestamps):
        return From.IGNORED
    # The record may be on a later page.
    return From.WELL if newest.identifier in page.datestamps or page.has_more else From.OFF


def _finding(how: From, newest: Newest, stamp: str, page: FirstPage) -> Finding | None:
    asked = f"The repository was asked for the identifiers of records that have changed since {stamp} (from)"
    record = f"the record {one_line(newest.identifier, 200)}, which has the datestamp {one_line(newest.datestamp, 60)}"
    if how is From.OFF:
        came = f"listed {len(page.datestamps):,} others" if page.datestamps else "listed none"
        message = f"{asked}, and {came}: {record}, is not among them. Lists of changes leave records out."
        remedy = "In the repository, `from` should include its own moment and all later ones."
    elif how is From.IGNORED:
        oldest = min(filter(is_proper, page.datestamps.values()), default="")
        message = f"{asked}, and listed older records, as of {one_line(oldest, 60)}: it ignores `from`."
        remedy = "The repository should list only records that have changed since then."
    elif how is From.EXCLUSIVE:
        message = f"{asked}, and did not list {record}; it lists the record with a slightly earlier `from`."
        remedy = "In the repository, `from` should include its own moment. Harvests of this site ask with an overlap."
    else:
        return None
    if how is not From.EXCLUSIVE:
        remedy += " Until then each harvest of this site lists everything."
    return Finding(FROM, message, remedy, Level.WARNING)


def _named(tree: etree._Element, _answer: Response) -> tuple[dict[str, str], int]:
    """The datestamps of the records on a page that are not deleted, by identifier; the number of all its records."""
    headers = list(tree.iter("{*}header"))
    live = (each for each in headers if not says_deleted(each))
    return {_text(each, "{*}identifier"): _text(each, "{*}datestamp") for each in live}, len(headers)


def _text(element: etree._Element, name: str) -> str:
    child = element.find(name)
    return own_text(child) if child is not None else ""
