"""Documents that are made to take long: small on the wire, each costly in a way of its own."""

from __future__ import annotations

from collections.abc import Callable

from support.eml_documents import additional, eml

ORGANIZATION = "<organizationName>Alder Creek</organizationName>"


def _contacts(content: str, attributes: str = "") -> str:
    return f"<contact{attributes}>{content}</contact>"


def many_similar_ids() -> bytes:
    """400 long ids, and 20 references to none of them."""
    ids = "".join(_contacts(ORGANIZATION, f' id="{"ab" * 90}{number:05}"') for number in range(400))
    references = "".join(_contacts(f"<references>{'ba' * 90}{number:05}</references>") for number in range(20))
    return eml("2.2.0", ids, references)


def quotes_in_a_number() -> bytes:
    """A decimal that looks like libxml2's own message about it, in a document that xmlschema does not explain."""
    value = "x" + "' is not a valid value " * 250 + "type '" * 2000
    sides = "".join(
        f"<{side}BoundingCoordinate>{value if side == 'west' else 1}</{side}BoundingCoordinate>"
        for side in ("west", "east", "north", "south")
    )
    place = f"<geographicDescription>x</geographicDescription><boundingCoordinates>{sides}</boundingCoordinates>"
    coverage = f"<coverage><geographicCoverage>{place}</geographicCoverage></coverage>"
    return eml("2.2.0", coverage + _contacts(ORGANIZATION) * 5001)


def _deep(content: str, name: str = "a") -> str:
    return additional("2.2.0", f"<{name}>" * 235 + content + f"</{name}>" * 235)


def empty_references() -> bytes:
    """900,000 of them, 240 levels deep."""
    return eml("2.2.0", after=_deep("<references/>" * 900_000))


def units_in_unit_lists() -> bytes:
    """A custom unit, and 250,000 unit lists that do not define it, inside of each other and side by side."""
    units = "".join(f"<unitList><unit id='{number}'/></unitList>" for number in range(250_000))
    return eml("2.2.0", after=_deep("<customUnit>x</customUnit>" + units, "unitList"))


def annotations_of_a_long_id() -> bytes:
    """500,000 annotations of an element whose id has 9 MB."""
    content = f'<b id="{"é" * 4_500_000}">' + "<annotation/>" * 500_000 + "</b>"
    return eml("2.2.0", after=additional("2.2.0", content))


def a_stylesheet_with_an_encoding() -> bytes:
    """8 MB that are not UTF-8, after what is no XML declaration."""
    return b'<?xml-stylesheet encoding="idna"?><x>' + "a.é".encode() * 2_000_000 + b"\xff</x>"


def long_references() -> bytes:
    """Five references of 9.8 MB each, not ASCII."""
    return eml("2.2.0", "", _contacts(f"<references>{'é' * 4_900_000}</references>") * 5)


def a_text_of_entities() -> bytes:
    """A text of which every character comes by itself."""
    return eml("2.2.0", "", f"<pubPlace>{'&amp;' * 1_900_000}</pubPlace>")


def a_text_between_comments() -> bytes:
    """The same, with as many comments as there may be."""
    return eml("2.2.0", "", f"<pubPlace>{'a<!---->' * 900_000}</pubPlace>")


def many_declarations() -> bytes:
    """As a program makes that joins parts, each with a line <?xml …?>."""
    return eml("2.2.0", "", "\n".join(["<?xml version='1.0'?>", f"<p>{'x' * 5000}</p>"] * 2000))


def comments_that_do_not_end() -> bytes:
    """In front of a second declaration, so that it is looked for a document before that."""
    return b"<?xml version='1.0'?><x><![CDATA[" + b"<!--" * 500_000 + b"]]><?xml version='1.0'?></x>"


def _many_attributes(number: int) -> str:
    return "".join(f' b{each}=""' for each in range(number))


def an_element_of_12_000_attributes() -> bytes:
    """The attributes are on an element that the schema knows."""
    return eml("2.2.0", "", f"<pubPlace{_many_attributes(12_000)}>x</pubPlace>")


def twenty_elements_of_990_attributes() -> bytes:
    """The most allowed attributes, on each of several elements that the schema knows."""
    return eml("2.2.0", _contacts(ORGANIZATION, _many_attributes(990)) * 20)


def five_hundred_elements_of_40_attributes() -> bytes:
    """The same elements with few attributes each."""
    return eml("2.2.0", _contacts(ORGANIZATION, _many_attributes(40)) * 500)


def many_namespaces_in_scope() -> bytes:
    """200 levels with 40 namespaces each, and 3,000 elements below them."""
    opening = "".join("<a" + "".join(f' xmlns:n{level}_{each}="u"' for each in range(40)) + ">" for level in range(200))
    return eml("2.2.0", f"{opening}{'<b/>' * 3000}{'</a>' * 200}")


COSTLY: dict[Callable[[], bytes], set[str]] = {
    many_similar_ids: {"eml.reference-unresolved"},
    quotes_in_a_number: {"schema.bad-value"},
    empty_references: set(),
    units_in_unit_lists: {"eml.custom-unit-undefined"},
    annotations_of_a_long_id: set(),
    a_stylesheet_with_an_encoding: {"xml.encoding"},
    long_references: {"eml.reference-unresolved"},
    a_text_of_entities: set(),
    a_text_between_comments: set(),
    many_declarations: {"xml.declaration-not-first"},
    comments_that_do_not_end: {"xml.declaration-not-first"},
    an_element_of_12_000_attributes: {"schema.unexpected-attribute"},
    twenty_elements_of_990_attributes: {"schema.unexpected-attribute"},
    five_hundred_elements_of_40_attributes: {"schema.unexpected-attribute"},
    many_namespaces_in_scope: {"schema.unexpected-element"},
}
"""The rules that each of them breaks."""
