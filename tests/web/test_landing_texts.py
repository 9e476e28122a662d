"""What a landing page says of a document, to people and to programs: pure functions."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from lxml import etree

from metaharvest.catalogue.selection import CatalogueEntry
from metaharvest.transform.crosswalks.facts import facts
from metaharvest.web.pages import addresses, sitemap
from metaharvest.web.pages.description import Description, describe, is_url
from metaharvest.web.pages.landing import Landing
from metaharvest.web.pages.schema_org import json_ld, type_of, written
from metaharvest.web.pages.signposting import page_links, record_links
from support.format_documents import VALID

AT = datetime(2026, 11, 20, 2, 30, tzinfo=UTC)
ENTRY = CatalogueEntry(7, "alder.1", "alder.1", None, "urn:eml", 2, "Frogs", 1, False, AT)
LANDING = Landing(ENTRY, b"", (), (), "alder", None, "")
FROGS = Description(
    "Frogs of Alder Creek",
    {
        "creator": ["Alder, Ann", "Alder Station"],
        "date": ["in print", "2026-11-20"],
        "publisher": ["Alder Press"],
        "identifier": ["alder.1.2", "https://doi.org/10.1234/frogs"],
        "rights": ["Free to use.", "https://creativecommons.org/licenses/by/4.0/"],
        "type": ["Dataset"],
    },
    ["https://orcid.org/0000-0001-2345-678X"],
    ["https://alder.example.org/frogs.csv"],
    ["44 -123 45 -122"],
    ["2020/2021-06"],
)
PAGE = "https://c.example.org/documents/alder.1"


def test_a_citation() -> None:
    cited = "Alder, Ann; Alder Station (2026): Frogs of Alder Creek. Alder Press. https://doi.org/10.1234/frogs"
    assert FROGS.citation(PAGE) == cited


def test_a_citation_of_little() -> None:
    assert Description("Frogs?", {}).citation(PAGE) == f"Frogs? {PAGE}"
    many = Description("Frogs", {"creator": [f"A{number}" for number in range(11)]})
    assert many.citation(PAGE) == f"{'; '.join(f'A{number}' for number in range(10))} et al.: Frogs. {PAGE}"


def test_a_description_without_a_tree_has_the_title_of_the_catalogue() -> None:
    assert describe(None, "", "Fr\x00ogs\u202e") == Description("Fr\ufffdogs\ufffd", {}, [], [], [], [])
    assert describe(None, "", "\u200fFr\u200bogs\u2028").title == "Frogs "
    unknown = etree.fromstring("<x/>")
    assert describe(unknown, "", "Frogs").title == "Frogs"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://alder.example.org/a", True),
        ("javascript:alert(1)", False),
        ("https://alder.example.org/ a", False),
        (f"https://{'a' * 2000}.example.org", False),
    ],
)
def test_only_addresses_of_the_web_become_links(text: str, expected: bool) -> None:
    assert is_url(text) is expected


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        ([], "Dataset"),
        (["Counts", "dataset"], "Dataset"),
        (["Software"], "SoftwareSourceCode"),
        (["x"], "CreativeWork"),
    ],
)
def test_the_type_of_schema_org(types: list[str], expected: str) -> None:
    assert type_of(Description("", {"type": types})) == expected


def test_schema_org() -> None:
    found = json.loads(written(json_ld(LANDING, FROGS, "https://c.example.org", "Our catalogue")))
    assert found == {
        "@context": {"@vocab": "https://schema.org/"},
        "@id": "https://doi.org/10.1234/frogs",
        "@type": "Dataset",
        "name": "Frogs of Alder Creek",
        "url": PAGE,
        "identifier": [
            "alder.1.2",
            {
                "@id": "https://doi.org/10.1234/frogs",
                "@type": "PropertyValue",
                "propertyID": "https://registry.identifiers.org/registry/doi",
                "value": "doi:10.1234/frogs",
                "url": "https://doi.org/10.1234/frogs",
            },
        ],
        "version": "2",
        "creator": {
            "@list": [
                {"@type": "Person", "name": "Ann Alder", "familyName": "Alder", "givenName": "Ann"},
                {"@type": "Organization", "name": "Alder Station"},
            ]
        },
        "publisher": [{"@type": "Organization", "name": "Alder Press"}],
        "datePublished": "2026-11-20",
        "license": "https://creativecommons.org/licenses/by/4.0/",
        "spatialCoverage": [{"@type": "Place", "geo": {"@type": "GeoShape", "box": "44 -123 45 -122"}}],
        "temporalCoverage": ["2020/2021-06"],
        "distribution": [{"@type": "DataDownload", "contentUrl": "https://alder.example.org/frogs.csv"}],
        "includedInDataCatalog": {"@type": "DataCatalog", "name": "Our catalogue", "url": "https://c.example.org/"},
        "subjectOf": {
            "@type": "DataDownload",
            "name": "Metadata in XML",
            "encodingFormat": ["application/xml", "urn:eml"],
            "contentUrl": "https://c.example.org/xml/alder.1",
            "dateModified": "2026-11-20T02:30:00+00:00",
        },
    }


def test_json_cannot_end_its_element() -> None:
    text = written({"name": "</script><!-- &amp;"})
    assert not set("<>&") & set(text)
    assert json.loads(text) == {"name": "</script><!-- &amp;"}


def test_signposting() -> None:
    assert page_links(LANDING, FROGS, "https://c.example.org").split(", ") == [
        '<https://doi.org/10.1234/frogs>; rel="cite-as"',
        '<https://schema.org/AboutPage>; rel="type"',
        '<https://schema.org/Dataset>; rel="type"',
        '<https://c.example.org/xml/alder.1>; rel="describedby"; type="application/xml"; profile="urn:eml"',
        '<https://c.example.org/resourcesync/capabilitylist.xml>; rel="resourcesync"',
        '<https://creativecommons.org/licenses/by/4.0/>; rel="license"',
        '<https://orcid.org/0000-0001-2345-678X>; rel="author"',
        '<https://alder.example.org/frogs.csv>; rel="item"',
    ]
    assert record_links("alder.1", "https://c.example.org").split(", ") == [
        f'<{PAGE}>; rel="describes"; type="text/html"',
        '<https://c.example.org/resourcesync/capabilitylist.xml>; rel="resourcesync"',
    ]


def test_a_header_of_links_is_short_and_in_ascii() -> None:
    files = [f'https://alder.example.org/fr\u00f6sche>"{number}, x' for number in range(200)]
    header = page_links(LANDING, Description("Frogs", {}, (), files), "https://c.example.org")
    assert header.isascii()
    assert len(header) <= 3500
    assert '"0,' not in header
    assert header.count("<") == header.count(">")


def test_authors_and_files_of_eml_and_datacite_and_iso() -> None:
    eml = etree.fromstring(
        "<e:eml xmlns:e='eml://ecoinformatics.org/eml-2.1.1'><dataset><creator>"
        "<userId directory='https://orcid.org'>0000-0001-2345-678X</userId><userId>uid=ann</userId></creator>"
        "<dataTable><physical><distribution><online><url>https://a.example.org/1.csv</url></online></distribution>"
        "<distribution><online><url function='information'>https://a.example.org/</url></online></distribution>"
        "</physical></dataTable></dataset></e:eml>"
    )
    assert facts(eml) == [("author", "https://orcid.org/0000-0001-2345-678X"), ("file", "https://a.example.org/1.csv")]
    datacite = etree.fromstring(
        "<resource xmlns='http://datacite.org/schema/kernel-4'><creators><creator><nameIdentifier>"
        "https://orcid.org/0000-0001-2345-6789</nameIdentifier></creator></creators></resource>"
    )
    author = [("author", "https://orcid.org/0000-0001-2345-6789")]
    assert facts(datacite) == author
    envelope = etree.fromstring(
        "<o:oai_datacite xmlns:o='http://schema.datacite.org/oai/oai-1.1/'><o:payload/></o:oai_datacite>"
    )
    envelope[0].append(datacite)
    assert facts(envelope) == author
    online = (
        "<g:onLine><g:CI_OnlineResource><g:linkage><g:URL>https://a.example.org/{0}</g:URL></g:linkage><g:function>"
        "<g:CI_OnLineFunctionCode codeListValue='{0}'/></g:function></g:CI_OnlineResource></g:onLine>"
    )
    options = (
        f"<g:transferOptions><g:x>{online.format('download')}{online.format('information')}</g:x></g:transferOptions>"
    )
    iso = etree.fromstring(
        "<g:MD_Metadata xmlns:g='http://www.isotc211.org/2005/gmd'><g:distributionInfo><g:MD_Distribution>"
        f"{options}</g:MD_Distribution></g:distributionInfo></g:MD_Metadata>"
    )
    assert facts(iso) == [("file", "https://a.example.org/download")]
    assert facts(etree.fromstring("<x/>")) == []


def test_boxes_and_periods() -> None:
    """Only numbers and dates that programs can read."""
    eml = (
        "<e:eml xmlns:e='eml://ecoinformatics.org/eml-2.1.1'><dataset><coverage><geographicCoverage>"
        "<boundingCoordinates>{}</boundingCoordinates></geographicCoverage><temporalCoverage><rangeOfDates>"
        "<beginDate><calendarDate>{}</calendarDate></beginDate><endDate><calendarDate>2021-06-30</calendarDate></endDate>"
        "</rangeOfDates></temporalCoverage></coverage></dataset></e:eml>"
    )
    sides = "".join(
        f"<{side}BoundingCoordinate>{value}</{side}BoundingCoordinate>"
        for side, value in {"west": "-123.5", "east": "-122", "north": "+45", "south": "44"}.items()
    )
    found = facts(etree.fromstring(eml.format(sides, "2020")))
    assert found == [("box", "44 -123.5 45 -122"), ("period", "2020/2021-06-30")]
    assert facts(etree.fromstring(eml.format(sides.replace("44", "south"), "spring"))) == []
    datacite = etree.fromstring(
        "<resource xmlns='http://datacite.org/schema/kernel-3'><geoLocations><geoLocation>"
        "<geoLocationBox>44 -123 45 -122</geoLocationBox></geoLocation></geoLocations></resource>"
    )
    assert facts(datacite) == [("box", "44 -123 45 -122")]
    assert facts(etree.fromstring(VALID["iso"])) == [("period", "2020/2021")]


def test_addresses() -> None:
    assert addresses.page_path("frogs/dc/oai:x:a%2F\u00f6?#") == "documents/frogs/dc/oai:x:a%252F%C3%B6%3F%23"
    assert addresses.xml_path("alder.1", 3) == "xml/alder.1?revision=3"
    ups = {b"/documents/alder.1": "../", b"/documents/frogs/dc/1": "../../../", b"/sitemap.xml": "./"}
    assert {path: addresses.up_from(path) for path in ups} == ups


def test_a_sitemap_escapes_addresses() -> None:
    root = etree.fromstring(sitemap.part([("a&b'", AT)], "https://c.example.org").encode())
    assert [each.text for each in root.iter("{*}loc")] == ["https://c.example.org/documents/a&b'"]
    assert [each.text for each in root.iter("{*}lastmod")] == ["2026-11-20T02:30:00Z"]
