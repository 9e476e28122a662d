"""Requests of a person to a source repository, registered or not; and the registration of several repositories."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import TypeVar

from metaharvest.config.files import open_file
from metaharvest.config.settings import Settings
from metaharvest.errors import CannotBeChecked, ListIncomplete, RequestError
from metaharvest.fetch.client import Fetcher
from metaharvest.fetch.url import repository_key
from metaharvest.harvest import adhoc_client
from metaharvest.model import FetchedDocument, Finding, Network, OaiOptions, Site, SiteOptions
from metaharvest.model.values import frozen
from metaharvest.services.harvester import Harvester
from metaharvest.sites.options import check_datestamp, check_window, options_text
from metaharvest.sites.registry import add_sites, new_site, read_sites
from metaharvest.sites.rows import OAI, check_list_url, no_base_url
from metaharvest.sites.same_source import origin_for, origins
from metaharvest.sources.base import ListedRecord, TimeBudget
from metaharvest.sources.oai_pmh import inspection, same_item
from metaharvest.sources.oai_pmh.friends import base_urls_in, is_url
from metaharvest.sources.oai_pmh.inspection import Inspection, RehearsedList
from metaharvest.sources.oai_pmh.protocol import Identity, Set
from metaharvest.sources.oai_pmh.records import RecordNames
from metaharvest.sources.oai_pmh.source import OaiSource
from metaharvest.text import one_line, shown_url

__all__ = ["ListedRecord", "RehearsedList", "check_datestamp"]

Answer = TypeVar("Answer")
Call = Callable[[Site, Fetcher, TimeBudget], Awaitable[Answer]]

_MOST_BYTES = 67_108_864


@frozen
class NamedRepositories:
    """Base URLs, each once; `left_out` has a sentence about each text that is no base URL."""

    base_urls: tuple[str, ...]
    left_out: tuple[str, ...]


@frozen
class SourceRepository:
    """A source repository that a person asks, under the network policy of the settings.

    Each method sends requests. It raises RequestError if `base_url` is no base URL, SettingsError, and the errors of
    fetching and of answers: FetchError, ListError.
    """

    settings: Settings
    base_url: str
    options: OaiOptions
    networks: tuple[Network, ...] = ()

    def identify(self) -> tuple[Identity, tuple[Finding, ...]]:
        """Its description of itself, and findings about oddities in it."""
        return self._ask(inspection.identify)

    def describe(self) -> Inspection:
        """All its descriptions of itself, and findings about them."""
        return self._ask(inspection.inspect)

    def friends(self) -> tuple[str, ...]:
        """The base URLs of other source repositories that it names."""
        identity, _ = self.identify()
        return identity.friends

    def sets(self) -> tuple[Set, ...]:
        """Its sets."""
        return self._ask(inspection.sets_of)

    def records(self, limit: int) -> tuple[list[ListedRecord], Finding | None]:
        """The first records of its list, as they would be harvested; and the reason if it broke off before."""
        try:
            check_window(self.options.begin, self.options.until)
        except ValueError as error:
            raise RequestError(f"{error}.".replace("from (begin)", "--from", 1)) from None
        return self._ask(partial(_some_records, limit=limit))

    def record(self, identifier: str) -> FetchedDocument:
        """The metadata of one record, as a document of its own."""

        async def fetched(site: Site, fetcher: Fetcher, _patience: TimeBudget) -> FetchedDocument:
            document = RecordNames(site.list_url, self.options).document_of(identifier)
            return await OaiSource(site, fetcher).fetch(document)

        return self._ask(fetched)

    def why_same(self, identifier: str, other: SourceRepository, other_identifier: str) -> str | None:
        """The reason why a record of each is of the same item, as a sentence; None if there is none."""
        one, another = (self.record(identifier), other.record(other_identifier))
        assert one.document.origin
        assert another.document.origin
        return same_item.why_same(one.document.origin, another.document.origin)

    def rehearse(self, pages: int | None) -> RehearsedList:
        """A rehearsal of its harvest: all of its list, or the first pages."""
        return self._ask(partial(inspection.rehearse, pages=pages))

    def _ask(self, call: Call[Answer]) -> Answer:
        try:
            url = check_list_url(self.base_url, is_repository=True)
            why = no_base_url(url)
        except ValueError as error:
            why = f"{error}."
        if why:
            raise RequestError(f"{why[:1].upper()}{why[1:]}")
        options = SiteOptions(allow_networks=self.networks, oai=self.options)
        return adhoc_client.ask(self.settings, Site(0, "", url, (), source_kind=OAI, options=options), call)


async def _some_records(
    site: Site, fetcher: Fetcher, patience: TimeBudget, limit: int
) -> tuple[list[ListedRecord], Finding | None]:
    listing = await OaiSource(site, fetcher, is_harvest=False).list_records(None, patience, full=True)
    records: list[ListedRecord] = []
    broken_off = None
    try:
        async with aclosing(listing.pages) as pages:
            async for page in pages:
                records += page.records
                if len(records) >= limit:
                    break
    except ListIncomplete as error:
        broken_off = error.findings[0]
    return records[:limit], broken_off


def base_urls_in_file(path: Path) -> tuple[str, ...]:
    """The base URLs in a file, one a line or as XML. Raises OSError, CannotBeChecked for a file over 64 MiB."""
    with open_file(path) as file:
        content = file.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise CannotBeChecked(f"The file {one_line(str(path))} is larger than 64 MiB. Divide it into smaller files.")
    return base_urls_of(content)


def base_urls_of(content: bytes) -> tuple[str, ...]:
    """The base URLs in the content of such a file. Raises CannotBeChecked for XML that is not well-formed."""
    return tuple(base_urls_in(content))


def registered_as(harvester: Harvester, base_urls: Sequence[str]) -> dict[str, str]:
    """The names of the sites that these source repositories are registered as already, by base URL."""
    names = {repository_key(site.list_url): site.name for site in reversed(harvester.read(read_sites))}
    return {url: names[key] for url in base_urls if (key := repository_key(url)) in names}


def usable(base_urls: Sequence[str]) -> NamedRepositories:
    """The base URLs among these texts, each once."""
    found: list[str] = []
    left_out: list[str] = []
    for url in dict.fromkeys(base_urls):
        if why := no_base_url(url) if is_url(url) else "it is no web address":
            left_out.append(f"'{one_line(shown_url(url), 200)}' is left out: {why}.")
        else:
            found.append(url)
    return NamedRepositories(tuple(found), tuple(left_out))


def register_repositories(harvester: Harvester, base_urls: Sequence[str], contact: str, prefix: str) -> dict[str, str]:
    """Register the source repositories that are not registered yet, switched off; their names by base URL.

    Raises ScheduleError.
    """
    # The other requests do without this import, which takes long.
    from metaharvest.services.sites import about, values_of

    found: dict[str, str] = {}
    added: list[Site] = []
    with harvester.writing() as session:
        sites = list(read_sites(session))
        known, names = {repository_key(site.list_url) for site in sites}, {site.name for site in sites}
        given = origins(sites)
        for url in base_urls:
            if (key := repository_key(url)) in known:
                continue
            given[key] = origin = origin_for(url, given)
            free = (origin[:80], *(f"{origin[:80]}-{number}" for number in range(2, 1000)))
            name = next(each for each in free if each not in names)
            values: dict[str, object] = {
                "name": name,
                "documentlisturl": url,
                "contact_email": contact,
                "source_kind": OAI,
                "enabled": False,
                "datenextharvest": harvester.today(),
                "options": options_text(SiteOptions(oai=OaiOptions(origin, prefix))),
            }
            added.append(new_site(values))
            known.add(key)
            names.add(name)
            found[url] = name
        add_sites(session, added)
        new = {each.name for each in added}
        registered = [each for each in read_sites(session) if isinstance(each, Site) and each.name in new]
        harvester.audit(session, *(about(each, "sites.add", after=values_of(each)) for each in registered))
    return found
