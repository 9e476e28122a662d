"""Versions 1.0 and 1.1 as version 2.0 has them."""

from __future__ import annotations

import pytest
from lxml import etree

from metaharvest.sources.oai_pmh.protocol import ResponseRoot, as_in_2_0, item_of, root_of

OLD = "http://www.openarchives.org/OAI/1.1/OAI_ListRecords"
ROOT = ResponseRoot(OLD, "1.1", "ListRecords")


@pytest.mark.parametrize(
    ("tag", "expected"),
    [
        (f"{{{OLD}}}ListRecords", ROOT),
        ("{http://www.openarchives.org/OAI/OAI_Identify}Identify", ("1.0", "Identify")),
        ("{http://www.openarchives.org/OAI/2.0/}OAI-PMH", ("2.0", "")),
        ("OAI-PMH", ("2.0", "")),
        (f"{{{OLD}}}html", None),
        ("{urn:other}ListRecords", None),
    ],
)
def test_the_root_element_says_the_version(tag: str, expected: ResponseRoot | tuple[str, str] | None) -> None:
    found = root_of(tag)
    assert found == expected or (found is not None and (found.version, found.verb) == expected)


def test_an_identifier_becomes_a_header() -> None:
    assert (item_of(ROOT, "ListIdentifiers"), item_of(ResponseRoot("", "2.0"), "ListIdentifiers")) == (
        "identifier",
        "header",
    )
    header = as_in_2_0(element('<identifier status="deleted"> a<!-- x -->:1 </identifier>'), ROOT)
    assert header is not None
    assert (header.tag, header.get("status")) == (ROOT.name("header"), "deleted")
    assert header.findtext(ROOT.name("identifier")) == "a:1"


@pytest.mark.parametrize(
    ("record", "is_there"),
    [
        ("<record><header/><metadata/></record>", True),
        ("<record><header/></record>", False),
        ('<record status="deleted"><header/></record>', True),
        ('<record><header status="deleted"/></record>', True),
        ("<record/>", True),
    ],
)
def test_a_record_without_metadata_is_not_in_this_format(record: str, is_there: bool) -> None:
    assert (as_in_2_0(element(record), ROOT) is not None) == is_there


def element(text: str) -> etree._Element:
    return etree.fromstring(f'<list xmlns="{OLD}">{text}</list>')[0]
