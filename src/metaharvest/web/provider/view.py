"""The published part of the catalogue, as one request sees it: formats, items, headers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from datetime import timedelta
from functools import cache, cached_property

from sqlalchemy.orm import Session

from metaharvest.catalogue import publication
from metaharvest.catalogue.change_feed import last_change
from metaharvest.catalogue.publication import PublishedDocument, documents_of_items
from metaharvest.catalogue.selection import (
    CatalogueEntry,
    Hidden,
    Selection,
    entries_of_item,
    list_entries,
    number_of_entries,
)
from metaharvest.model.values import frozen
from metaharvest.queries import public_sites
from metaharvest.queries.public_sites import names_of
from metaharvest.web.provider import sets
from metaharvest.web.provider.answers import Header
from metaharvest.web.provider.formats import DUBLIN_CORE, Format, format_of_type
from metaharvest.web.provider.identifiers import Item, possible_items, public_identifiers

_MOST_SIZES = 100
"""Sizes of lists that are kept."""


class ListSizes:
    """The numbers of records of lists, kept until the catalogue changes, for several threads.

    To count takes longer than to make a page.
    """

    def __init__(self) -> None:
        self._kept: dict[tuple[Selection, int], int] = {}

    def size(self, session: Session, selection: Selection) -> int:
        """The number of records of a list."""
        key = selection, last_change(session)
        if (kept := self._kept.get(key)) is not None:
            return kept
        counted = selection if publication.has_several_formats(session) else replace(selection, one_of=None)
        found = number_of_entries(session, counted)
        if selection.has_site:
            # A site can be removed while the catalogue stays the same.
            return found
        if len(self._kept) >= _MOST_SIZES:
            self._kept = {}
        self._kept[key] = found
        return found


@frozen(kw_only=True)
class Public:
    """What the provider says of itself, and the sizes of its pages in records and bytes.

    `hidden` are the names of sites and origins that it does not publish. `hidden_sites` are the numbers of all
    sites that this process has seen with these names: a site that is renamed or removed stays hidden. `sizes` are the
    known sizes of lists. `key` signs tokens. `page_url` has the URL of the landing page of a document id. `friends`,
    `rights` and `branding` are URLs. Answers have the time of `lag` ago.
    """

    name: str
    base_url: str
    domain: str
    administrators: Sequence[str]
    key: bytes
    page_url: Callable[[str], str]
    lag: timedelta
    page_records: int
    page_bytes: int
    friends: Sequence[str] = ()
    rights: str = ""
    branding: str = ""
    hidden: Sequence[str] = ()
    hidden_sites: set[int] = field(default_factory=set)
    sizes: ListSizes = field(default_factory=ListSizes)


class View:
    """The published part of the catalogue in one session."""

    def __init__(self, session: Session, public: Public) -> None:
        self.session = session
        self.public = public

    @cached_property
    def hidden(self) -> Hidden:
        """The sites and origins that are not published."""
        return hidden_of(self.session, self.public)

    @cached_property
    def formats(self) -> Sequence[Format]:
        """The formats of published documents, with oai_dc."""
        types = publication.document_types(self.session)
        others = [each for each in map(format_of_type, types) if each is not None and each != DUBLIN_CORE]
        return [DUBLIN_CORE, *filter(self._is_published, others)]

    def _is_published(self, of: Format) -> bool:
        """True if a published document has this format, or had it."""
        selection = Selection(document_types=(of.document_type,), hidden=self.hidden, one_of="format")
        return bool(list_entries(self.session, selection, 1))

    def documents_of(self, identifier: str) -> Sequence[CatalogueEntry]:
        """The published documents of the item with this identifier."""
        found = documents_of_items(self.session, possible_items(identifier, self.public.domain), self.hidden)
        for item, named in public_identifiers(found, self.public.domain).items():
            if named == identifier:
                return entries_of_item(self.session, item.origin, item.item_identifier, self.hidden)
        return []

    def headers(self, listed: Sequence[PublishedDocument]) -> Sequence[Header]:
        """The headers of these documents."""
        names = names_of(self.session, {each.entry.site_id for each in listed if each.entry.site_id is not None})

        @cache
        def sets_in(site: int | None, origin: str | None, of_source: Sequence[str], kind: str) -> Sequence[str]:
            return self._sets(names.get(site) if site is not None else None, origin, of_source, kind)

        return [
            Header(
                identifier,
                each.entry.changed_at,
                sets_in(each.entry.site_id, each.entry.origin, each.sets, each.entry.document_type),
                each.entry.deleted,
            )
            for each, identifier in zip(listed, self._identifiers(listed), strict=True)
        ]

    def _identifiers(self, listed: Sequence[PublishedDocument]) -> Iterator[str]:
        domain = self.public.domain
        shared = {each.entry.item_identifier for each in listed if not each.is_alone}
        documents = documents_of_items(self.session, shared, self.hidden) if shared else ()
        identifiers = public_identifiers(documents, domain)
        for each in listed:
            item = Item(each.entry.origin, each.entry.item_identifier)
            # A shared item without a published document has moved to a hidden site since the list was read.
            is_lost = not each.is_alone
            yield identifiers.get(item) or item.identifier(domain, is_altered=each.altered or is_lost)

    def _sets(self, site: str | None, origin: str | None, of_source: Sequence[str], kind: str) -> Sequence[str]:
        found = []
        if site is not None:
            found.append(sets.site_set(site))
        if origin is not None:
            found += [sets.origin_set(origin), *(sets.origin_set(origin, each) for each in of_source)]
        of = format_of_type(kind)
        found.append(f"{sets.FORMAT}:{sets.escaped(of.set_name)}" if of else sets.FORMAT)
        return sets.lowest(found)


def hidden_of(session: Session, public: Public) -> Hidden:
    """The sites and origins that are not published."""
    if public.hidden:
        public.hidden_sites.update(public_sites.hidden_numbers(session, public.hidden))
    return public_sites.hidden_of(session, public.hidden, public.hidden_sites)
