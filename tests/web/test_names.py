"""Identifiers of items, and sets: one-to-one, and in the form that the protocol wants."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metaharvest.catalogue.publication import ItemDocument
from metaharvest.catalogue.selection import CatalogueEntry
from metaharvest.model.namespaces import OAI_DC
from metaharvest.web.provider import sets
from metaharvest.web.provider.formats import format_of_type
from metaharvest.web.provider.identifiers import Item, domain_of, possible_items, public_identifiers

DOMAIN = "catalogue.example.org"
AT = datetime(2026, 1, 1, tzinfo=UTC)
OAI_IDENTIFIER = re.compile(
    r"oai:[a-zA-Z][a-zA-Z0-9\-]*(\.[a-zA-Z][a-zA-Z0-9\-]*)+:[a-zA-Z0-9\-_\.!~\*'\(\);/\?:@&=\+$,%]+"
)
"""The pattern of oai-identifier.xsd."""

SET_SPEC = re.compile(r"([A-Za-z0-9\-_\.!~\*'\(\)])+(:[A-Za-z0-9\-_\.!~\*'\(\)]+)*")
"""The pattern of OAI-PMH.xsd."""

PRINTABLE = "".join(map(chr, range(33, 127)))


def entry(number: int, item: str, origin: str | None, kind: str = "urn:x", prefix: str = "x") -> CatalogueEntry:
    name = item if origin is None else f"{origin}/{prefix}/{item}"
    return CatalogueEntry(number, name, item, origin, kind, 1, "", 1, False, AT)


def named(*documents: ItemDocument) -> list[str]:
    return list(public_identifiers(documents, DOMAIN).values())


@pytest.mark.parametrize(
    ("item", "origin", "identifier"),
    [
        ("oai:frogs.org:1", "frogs", "oai:frogs.org:1"),
        ("doi:10.5063/F1X", None, "doi:10.5063/F1X"),
        ("https://frogs.org/1", "frogs", "https://frogs.org/1"),
        ("urn:nbn:de:1", "frogs", "urn:nbn:de:1"),
        ("oai:frogs:1", "frogs", f"oai:{DOMAIN}:frogs/oai:frogs:1"),
        ("1234", "frogs", f"oai:{DOMAIN}:frogs/1234"),
        ("a%20b#c", "frogs", f"oai:{DOMAIN}:frogs/a%20b%23c"),
        ("a%2520b", "frogs", f"oai:{DOMAIN}:frogs/a%2520b"),
        ("knb-lter.1", None, f"oai:{DOMAIN}:knb-lter.1"),
        ("frogs/1", None, f"oai:{DOMAIN}:frogs%2F1"),
        (f"oai:{DOMAIN}:x", "frogs", f"oai:{DOMAIN}:frogs/oai:{DOMAIN}:x"),
    ],
)
def test_an_item_keeps_a_global_identifier(item: str, origin: str | None, identifier: str) -> None:
    assert named(ItemDocument(item, origin, False)) == [identifier]
    assert item in possible_items(identifier, DOMAIN)


def test_a_normalised_item_has_an_identifier_of_this_provider_in_each_format() -> None:
    one, other = (ItemDocument("oai:f.org:1", "frogs", altered) for altered in (False, True))
    assert named(one, other) == [f"oai:{DOMAIN}:frogs/oai:f.org:1"]


def test_the_first_origin_keeps_an_identifier_that_two_have() -> None:
    documents = [ItemDocument("oai:f.org:1", origin, False) for origin in ("b", "a")]
    assert named(*documents) == ["oai:f.org:1", f"oai:{DOMAIN}:a/oai:f.org:1"]


@given(st.lists(st.tuples(st.sampled_from([None, "a", "b/"]), st.text(min_size=1, max_size=8)), unique=True))
def test_no_two_items_have_one_identifier(given: list[tuple[str | None, str]]) -> None:
    items = {
        Item(origin, quote(text.replace("%", "%25"), safe=PRINTABLE) if origin else text)
        for origin, text in given
        if origin or (text.isascii() and text.isprintable() and " " not in text)
    }
    found = public_identifiers([ItemDocument(each.item_identifier, each.origin, False) for each in items], DOMAIN)
    assert len(set(found.values())) == len(items)
    for item, identifier in found.items():
        assert item.item_identifier in possible_items(identifier, DOMAIN)
        assert OAI_IDENTIFIER.fullmatch(identifier) or ":" in item.at_source


@pytest.mark.parametrize(
    ("url", "domain"),
    [
        ("https://Catalogue.Example.org/oai", "catalogue.example.org"),
        ("http://127.0.0.1:8000/oai", "localhost.localdomain"),
        ("http://localhost/oai", "localhost.localdomain"),
    ],
)
def test_the_domain_is_the_host_if_it_has_a_name(url: str, domain: str) -> None:
    assert domain_of(url) == domain


@given(st.text())
def test_a_part_of_a_set_is_one_to_one(text: str) -> None:
    part = sets.escaped(text)
    assert SET_SPEC.fullmatch(part)
    assert sets.unescaped(part) == text


@given(st.text(alphabet="~0123456789ABCDEFabcdef%é"))
def test_other_spellings_are_no_sets(part: str) -> None:
    text = sets.unescaped(part)
    assert text is None or sets.escaped(text) == part


def test_sets_have_the_name_of_sites_origins_and_their_sets() -> None:
    assert sets.site_set("alder creek") == "site:alder~20creek"
    assert sets.origin_set("frogs", "amphibia:a/b") == "origin:frogs:amphibia:a~2Fb"
    assert sets.parts_of("origin:frogs:amphibia:a~2Fb") == ["origin", "frogs", "amphibia", "a/b"]
    assert sets.parts_of("other:frogs") is None
    assert sets.parts_of("site:a~2fb") is None
    assert sets.lowest(["origin:a", "origin:a:b", "origin:ab", "site:x", "site:x"]) == [
        "origin:a:b",
        "origin:ab",
        "site:x",
    ]


def test_the_lowest_of_many_sets_are_found_in_time_that_grows_with_their_number() -> None:
    specs = [f"origin:a:{number}" for number in range(60_000)]
    assert sets.lowest(["origin:a", *specs]) == specs


@pytest.mark.parametrize(
    ("document_type", "prefix"),
    [
        ("eml://ecoinformatics.org/eml-2.1.1", "eml-2.1.1"),
        ("https://eml.ecoinformatics.org/eml-2.2.0", "eml-2.2.0"),
        (OAI_DC, "oai_dc"),
        ("http://www.loc.gov/mods/v3", "mods"),
        ("http://e.org/formats/frog~1/", "frog~1-32137c"),
        ("-//DTD//", "DTD-"),
        ("http://e.org/a/oai_dc", "oai_dc-"),
        ("http://[bad", None),
        ("a b", None),
        ("", None),
    ],
)
def test_the_prefix_of_a_format_follows_from_its_document_type(document_type: str, prefix: str | None) -> None:
    found = format_of_type(document_type)
    assert (found and found.prefix.startswith(prefix or "?")) == (prefix and True)


@given(st.text(alphabet="abc/:#.-~", min_size=1, max_size=20), st.text(alphabet="abc/:#.-~", min_size=1, max_size=20))
def test_two_formats_have_two_prefixes(one: str, other: str) -> None:
    formats = [format_of_type(each) for each in (one, other)]
    assert len({each.prefix for each in formats if each}) == len({one, other})
