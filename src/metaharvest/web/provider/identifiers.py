"""The identifiers of items: the one at the source, or one in the domain of this provider. Pure.

An item keeps the identifier that it has at its source if that is a URI of a known scheme and the metadata is as
received (OAI-PMH guidelines for aggregators). Otherwise it gets `oai:DOMAIN:ORIGIN/IDENTIFIER`, a document of a harvest
list `oai:DOMAIN:DOCUMENT`. Escapes are one-to-one, so that identifiers compare by characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple
from urllib.parse import quote, unquote, urlsplit

from metaharvest.catalogue.publication import ItemDocument
from metaharvest.model.namespaces import OAI_DOMAIN, is_of_known_scheme

_DOMAIN = re.compile(OAI_DOMAIN)
NO_DOMAIN = "localhost.localdomain"
"""The domain of a provider whose host has no name."""

_SAFE = "-_.!~*'();/?:@&=+$,"
_PRINTABLE = "".join(map(chr, range(33, 127)))


class Item(NamedTuple):
    """An item of the catalogue: its origin, None for a harvest list, and its identifier as the catalogue has it."""

    origin: str | None
    item_identifier: str

    @property
    def at_source(self) -> str:
        """The identifier at its source. The catalogue has it percent-encoded, if it is a record's."""
        return self.item_identifier if self.origin is None else unquote(self.item_identifier)

    def identifier(self, domain: str, *, is_altered: bool) -> str:
        """Its identifier, if no other item had the one at the source first.

        It keeps the one at its source if that is a URI of a known scheme, and cannot be one of this domain.
        """
        own = self.at_source
        is_unclear = self.origin is None and "%" in own
        if is_altered or is_unclear or own.startswith(f"oai:{domain}:") or not is_of_known_scheme(own):
            return self.named_in(domain)
        return own

    def named_in(self, domain: str) -> str:
        """Its identifier in this domain."""
        if self.origin is None:
            return f"oai:{domain}:{quote(self.item_identifier, safe=_SAFE.replace('/', ''))}"
        return f"oai:{domain}:{quote(self.origin, safe=_SAFE.replace('/', ''))}/{quote(self.at_source, safe=_SAFE)}"


def public_identifiers(documents: Iterable[ItemDocument], domain: str) -> Mapping[Item, str]:
    """The identifier of each item of these documents, which are in the order of their numbers.

    Of two origins that have one identifier, the one that had it first keeps it.
    """
    owners: dict[str, Item] = {}
    altered: dict[Item, bool] = {}
    for each in documents:
        item = Item(each.origin, each.item_identifier)
        owners.setdefault(item.item_identifier, item)
        altered[item] = altered.get(item, False) or each.altered
    return {
        item: item.identifier(domain, is_altered=is_altered or owners[item.item_identifier] != item)
        for item, is_altered in altered.items()
    }


def possible_items(identifier: str, domain: str) -> tuple[str, ...]:
    """The item identifiers that the catalogue may have for an item with this identifier."""
    found = [identifier, _encoded(identifier)]
    start = f"oai:{domain}:"
    if identifier.startswith(start):
        origin, slash, local = identifier[len(start) :].partition("/")
        found.append(_encoded(unquote(local)) if slash else unquote(origin))
    return tuple(dict.fromkeys(each for each in found if each.isascii() and each.isprintable()))


def domain_of(base_url: str) -> str:
    """The domain for identifiers of a provider at this address."""
    host = urlsplit(base_url).hostname or ""
    return host if _DOMAIN.fullmatch(host) else NO_DOMAIN


def _encoded(identifier: str) -> str:
    """As document ids of records have an identifier: `%` and all but printable ASCII is percent-encoded."""
    return quote(identifier.replace("%", "%25"), safe=_PRINTABLE)
