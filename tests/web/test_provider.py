"""The verbs over a catalogue: every answer keeps the schemas of the protocol."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, tzinfo

import pytest
from sqlalchemy import update
from sqlalchemy.orm import Session

from metaharvest.catalogue import change_feed
from metaharvest.catalogue.change_feed import COMMIT_LAG
from metaharvest.database import clock
from metaharvest.database.models import CatalogueDocument, HarvestSiteSchedule
from metaharvest.errors import SettingsError
from metaharvest.services import harvester as services
from metaharvest.web.server import describe
from support.databases import KINDS, on_one_database
from support.harvester import Harvester, eml
from support.journal_rows import JournalRows
from support.provider import (
    DATACITE,
    EML,
    OAI,
    OAI_DC,
    Asked,
    asked,
    codes,
    dc,
    delete,
    document,
    opened_with,
    record,
    store,
    texts,
)

OURS = "oai:catalogue.example.org:"
RIGHTS = (
    b'<rights xmlns="http://www.openarchives.org/OAI/2.0/rights/"><rightsReference ref="https://e.org/r"/></rights>'
)
IN_DATACITE = f'<resource xmlns="{DATACITE}"><titles><title>Toads</title></titles></resource>'.encode()
TOADS = record("oai:frogs.org:2", IN_DATACITE, prefix="datacite", kind=DATACITE, site=2)


@pytest.fixture
def filled(harvester: Harvester) -> Harvester:
    """A document of a harvest list, two records in Dublin Core, one of them in a second format, one deleted one."""
    for name in ("alder creek", "frogs"):
        harvester.add_site(name, f"https://{name.split()[0]}.example.org/list.xml", contact_email="c@example.org")
    gone = record("oai:frogs.org:3", dc("Gone"), sets=("a:b",), site=2)
    store(
        harvester,
        document("alder.1", eml("alder.1.1")),
        record("oai:frogs.org:1", dc("Frogs"), sets=("a:b", "d"), about=[RIGHTS], site=2),
        record("oai:frogs.org:2", dc("Toads"), site=2),
        gone,
    )
    store(harvester, TOADS)
    delete(harvester, gone)
    return harvester


@pytest.fixture
def ask(filled: Harvester) -> Iterator[Asked]:
    with asked(filled) as opened:
        yield opened


def test_identify(ask: Asked) -> None:
    root = ask("Identify")
    assert texts(root, "repositoryName") == ["Test network"]
    assert texts(root, "baseURL") == ["http://catalogue.example.org/oai"]
    assert texts(root, "adminEmail") == ["steward@example.org"]
    assert texts(root, "deletedRecord") == ["persistent"]
    assert texts(root, "earliestDatestamp") <= texts(root, "responseDate")
    assert b"<repositoryIdentifier>catalogue.example.org<" in ask.provider.answer([("verb", "Identify")])
    [sample] = [each.text or "" for each in root.iter("{*}sampleIdentifier")]
    assert texts(ask("GetRecord", identifier=sample, metadataPrefix="oai_dc"), "identifier") == [f"{OURS}alder.1"]


@on_one_database
def test_the_earliest_datestamp_is_that_of_a_former_format_if_it_is_older(harvester: Harvester) -> None:
    harvester.add_site("alder", "https://alder.example.org/list.xml")
    for revision, kind in enumerate((EML, DATACITE), 1):
        store(harvester, document("alder.1", b"<a/>", kind, revision=revision))
    harvester.rows("UPDATE catalogue_former_format SET changed_at = '2001-01-01 00:00:00'")
    with asked(harvester) as ask:
        [header] = ask("ListIdentifiers", metadataPrefix="eml-2.1.1").iter(f"{OAI}header")
        assert texts(ask("Identify"), "earliestDatestamp") == texts(header, "datestamp")
    with asked(harvester, hidden=["alder"]) as ask:
        assert texts(ask("Identify"), "earliestDatestamp") != texts(header, "datestamp")


@on_one_database
def test_identify_of_an_empty_catalogue(harvester: Harvester) -> None:
    options = {"friends": ["https://e.org/oai"], "rights": "https://e.org/r", "branding": "https://e.org/i.png"}
    with asked(harvester, **options) as ask:
        root = ask("Identify")
        assert texts(root, "earliestDatestamp") == texts(root, "responseDate")
        assert len(texts(root, "description")) == 4
        assert codes(ask("ListRecords", metadataPrefix="oai_dc")) == ["noRecordsMatch"]
        assert texts(ask("ListMetadataFormats"), "metadataPrefix") == ["oai_dc"]
        assert texts(ask("ListSets"), "setSpec") == ["format", "format:oai_dc", "origin", "site"]


def test_formats(ask: Asked) -> None:
    assert texts(ask("ListMetadataFormats"), "metadataPrefix") == ["oai_dc", "eml-2.1.1", "datacite"]
    of = {
        f"{OURS}alder.1": ["oai_dc", "eml-2.1.1"],
        "oai:frogs.org:1": ["oai_dc"],
        "oai:frogs.org:2": ["oai_dc", "datacite"],
        "oai:frogs.org:3": ["oai_dc"],
    }
    for identifier, prefixes in of.items():
        assert texts(ask("ListMetadataFormats", identifier=identifier), "metadataPrefix") == prefixes
    assert codes(ask("ListMetadataFormats", identifier="oai:frogs.org:4")) == ["idDoesNotExist"]


def test_sets(ask: Asked) -> None:
    root = ask("ListSets")
    found = dict(zip(texts(root, "setSpec"), texts(root, "setName"), strict=True))
    assert list(found) == sorted(found)
    assert set(found) == {
        "format", "format:datacite", "format:eml", "format:oai_dc", "origin", "origin:frogs", "origin:frogs:a",
        "origin:frogs:a:b", "origin:frogs:d", "site", "site:alder~20creek", "site:frogs",
    }  # fmt: skip
    assert found["origin:frogs:a:b"] == "Set a:b of the source repository frogs"


@on_one_database
def test_sets_in_pages(filled: Harvester) -> None:
    with asked(filled, page_records=5) as ask:
        pages = list(ask.pages("ListSets"))
        assert [len(texts(page, "setSpec")) for page in pages] == [5, 5, 2]
        tokens = [page.find(f".//{OAI}resumptionToken") for page in pages]
        assert [each.get("cursor") for each in tokens if each is not None] == ["0", "5", "10"]


def test_a_record_with_its_sets_and_provenance(ask: Asked) -> None:
    root = ask("GetRecord", identifier="oai:frogs.org:1", metadataPrefix="oai_dc")
    assert texts(root, "setSpec") == ["site:frogs", "origin:frogs:a:b", "origin:frogs:d", "format:oai_dc"]
    provenance = "{http://www.openarchives.org/OAI/2.0/provenance}"
    description = next(root.iter(f"{provenance}originDescription"))
    assert dict(description.items()) == {"harvestDate": "2026-11-20T02:30:00Z", "altered": "false"}
    assert [each.text for each in description] == [
        "https://frogs.example.org/oai", "oai:frogs.org:1", "2026-11-19", OAI_DC,
    ]  # fmt: skip
    assert len(list(root.iter(f"{OAI}about"))) == 2


def test_a_document_of_a_list_in_both_formats(ask: Asked) -> None:
    own = ask("GetRecord", identifier=f"{OURS}alder.1", metadataPrefix="eml-2.1.1")
    [metadata] = own.iter(f"{OAI}metadata")
    assert metadata[0].tag == f"{{{EML}}}eml"
    assert metadata[0][0].tag == "dataset"
    assert not list(own.iter(f"{OAI}about"))
    made = ask("GetRecord", identifier=f"{OURS}alder.1", metadataPrefix="oai_dc")
    assert next(made.iter("{http://purl.org/dc/elements/1.1/}title")).text == "A title"
    assert texts(made, "setSpec") == ["site:alder~20creek", "format:eml"]


def test_mistakes_in_questions_about_one_record(ask: Asked) -> None:
    of = {"identifier": "oai:frogs.org:1", "metadataPrefix": "datacite"}
    assert codes(ask("GetRecord", **of)) == ["cannotDisseminateFormat"]
    of = {"identifier": "oai:frogs.org:9", "metadataPrefix": "none"}
    root = ask("GetRecord", **of)
    assert sorted(codes(root)) == ["cannotDisseminateFormat", "idDoesNotExist"]
    [request] = root.iter(f"{OAI}request")
    assert dict(request.items()) == {"verb": "GetRecord", **of}
    root = ask("GetRecord", identifier="oai:frogs.org:1")
    assert codes(root) == ["badArgument"]
    assert [each.items() for each in root.iter(f"{OAI}request")] == [[]]


def test_a_deleted_record_is_listed_in_its_formats(ask: Asked) -> None:
    root = ask("GetRecord", identifier="oai:frogs.org:3", metadataPrefix="oai_dc")
    [header] = root.iter(f"{OAI}header")
    assert header.get("status") == "deleted"
    assert texts(root, "setSpec") == ["site:frogs", "origin:frogs:a:b", "format:oai_dc"]
    assert not [each for each in root.iter() if each.tag in (f"{OAI}metadata", f"{OAI}about")]


ALL = {f"{OURS}alder.1", "oai:frogs.org:1", "oai:frogs.org:2", "oai:frogs.org:3"}


@pytest.mark.parametrize("size", [1, 2, 200])
@pytest.mark.parametrize("verb", ["ListRecords", "ListIdentifiers"])
def test_every_item_is_once_in_dublin_core(filled: Harvester, verb: str, size: int) -> None:
    with asked(filled, page_records=size) as ask:
        pages = list(ask.pages(verb, metadataPrefix="oai_dc"))
    found = [each for page in pages for each in texts(page, "identifier")]
    assert len(found) == 4
    assert set(found) == ALL
    tokens = [page.find(f".//{OAI}resumptionToken") for page in pages]
    if len(pages) == 1:
        assert tokens == [None]
    else:
        assert {each.get("completeListSize") for each in tokens if each is not None} == {"4"}
        assert [each.get("cursor") for each in tokens if each is not None] == [str(n) for n in range(0, 4, size)]
        assert tokens[-1] is not None
        assert not tokens[-1].text
        assert all(each.get("expirationDate") for each in tokens[:-1] if each is not None)


@pytest.mark.parametrize(
    ("set_spec", "found"),
    [
        ("site", ALL),
        ("site:alder~20creek", {f"{OURS}alder.1"}),
        ("site:alder~20creek:x", set()),
        ("origin", ALL - {f"{OURS}alder.1"}),
        ("origin:frogs", ALL - {f"{OURS}alder.1"}),
        ("origin:frogs:a", {"oai:frogs.org:1", "oai:frogs.org:3"}),
        ("origin:frogs:a:b", {"oai:frogs.org:1", "oai:frogs.org:3"}),
        ("origin:frogs:d", {"oai:frogs.org:1"}),
        ("origin:frogs:b", set()),
        ("format", ALL),
        ("format:eml", {f"{OURS}alder.1"}),
        ("format:eml:2", set()),
        ("format:oai_dc", ALL - {f"{OURS}alder.1"}),
        ("format:datacite", set()),
        ("other", set()),
    ],
)
def test_lists_of_sets(ask: Asked, set_spec: str, found: set[str]) -> None:
    root = ask("ListIdentifiers", metadataPrefix="oai_dc", set=set_spec)
    assert set(texts(root, "identifier")) == found
    assert codes(root) == ([] if found else ["noRecordsMatch"])


def test_lists_of_formats_and_of_periods(ask: Asked) -> None:
    assert ask.identifiers(metadataPrefix="datacite") == ["oai:frogs.org:2"]
    assert ask.identifiers(metadataPrefix="datacite", set="format:datacite") == ["oai:frogs.org:2"]
    assert codes(ask("ListRecords", metadataPrefix="datacite", set="format:eml")) == ["noRecordsMatch"]
    assert codes(ask("ListRecords", metadataPrefix="other")) == ["cannotDisseminateFormat"]
    [stamp] = texts(ask("ListRecords", metadataPrefix="datacite"), "datestamp")
    assert ask.identifiers(metadataPrefix="datacite", from_=stamp, until=stamp) == ["oai:frogs.org:2"]
    assert ask.identifiers(metadataPrefix="datacite", from_=stamp[:10], until=stamp[:10]) == ["oai:frogs.org:2"]
    for period in ({"until": "2001-01-01"}, {"from_": "2999-01-01"}, {"from_": "2999-01-01T00:00:00Z"}):
        assert codes(ask("ListRecords", metadataPrefix="oai_dc", **period)) == ["noRecordsMatch"]


@pytest.mark.parametrize(
    "arguments",
    [
        {"from_": "0001-01-01"},
        {"until": "9999-12-31"},
        {"from_": "0001-01-01T00:00:00Z", "until": "9999-12-31T23:59:59Z"},
        {"from_": "1970-01-01T00:00:00Z"},
        {"from_": "1969-12-31T23:59:59Z"},
        {"set": "site:~00"},
        {"set": "origin:~00"},
        {"set": "origin:frogs:~00"},
        {"set": "origin:frogs:~E2~82~AC"},
        {"set": "site:" + "~F0~9F~90~B8" * 300},
        {"set": "format:~"},
    ],
)
def test_odd_values_are_answered(ask: Asked, arguments: dict[str, str]) -> None:
    is_period = "set" not in arguments
    root = ask("ListIdentifiers", metadataPrefix="oai_dc", **arguments)
    assert codes(root) == ([] if is_period else ["noRecordsMatch"])
    assert set(texts(root, "identifier")) == (ALL if is_period else set())


@pytest.mark.parametrize(
    "identifier", ["urn:x:%00", f"{OURS}%00", "doi:10.1/%E2%82%AC", f"{OURS}frogs/%00", "urn:" + "x" * 4000]
)
def test_odd_identifiers_do_not_exist(ask: Asked, identifier: str) -> None:
    assert codes(ask("GetRecord", identifier=identifier, metadataPrefix="oai_dc")) == ["idDoesNotExist"]


def test_the_other_format_takes_the_place_of_a_deleted_dublin_core(filled: Harvester) -> None:
    """The record is still there, and counts as changed."""
    harvester = filled
    harvester.rows("UPDATE catalogue_document SET changed_at = '2001-01-01 00:00:00.000000'")
    delete(harvester, record("oai:frogs.org:2", dc("Toads"), site=2))
    with asked(harvester) as ask:
        root = ask("ListRecords", metadataPrefix="oai_dc", from_="2010-01-01")
        assert texts(root, "identifier") == ["oai:frogs.org:2"]
        assert next(root.iter("{http://purl.org/dc/elements/1.1/}title")).text == "Toads"
        delete(harvester, TOADS)
        assert [each.get("status") for each in ask("ListRecords", metadataPrefix="oai_dc", from_="2010-01-01").iter(
            f"{OAI}header"
        )] == ["deleted"]  # fmt: skip


def test_a_record_whose_formats_are_deleted_one_after_another_is_listed_as_deleted(filled: Harvester) -> None:
    for each in (record("oai:frogs.org:2", dc("Toads"), site=2), TOADS):
        filled.rows("UPDATE catalogue_document SET changed_at = '2001-01-01 00:00:00.000000'")
        delete(filled, each)
    with asked(filled) as ask:
        [header] = ask("ListIdentifiers", metadataPrefix="oai_dc", from_="2010-01-01").iter(f"{OAI}header")
        assert header.get("status") == "deleted"


def test_a_normalised_record_keeps_its_identifier_when_it_is_erased_and_comes_back(filled: Harvester) -> None:
    frogs = record("oai:frogs.org:4", dc("Frogs"), about=[RIGHTS], sets=("d",), altered=True, site=2)
    name = frogs.fetched.document.document_id
    identifier = f"{OURS}frogs/oai:frogs.org:4"
    store(filled, frogs)
    with asked(filled) as ask:
        assert statuses(ask, "oai_dc")[identifier] is None
        assert filled("target", "withdraw", name, "--reason", "names a person", "--erase", "--yes").code == 0
        assert statuses(ask, "oai_dc")[identifier] == "deleted"
        assert "origin:frogs:d" in texts(ask("GetRecord", identifier=identifier, metadataPrefix="oai_dc"), "setSpec")
        kept = "SELECT base_url, identifier, about, received FROM document_origin WHERE altered"
        assert filled.rows(kept) == [("", "", "[]", None)]
        assert filled("target", "withdraw", name, "--undo").code == 0
        store(filled, frogs)
        assert statuses(ask, "oai_dc")[identifier] is None


def test_a_page_has_no_more_bytes_than_allowed_but_one_record(harvester: Harvester) -> None:
    store(harvester, *(record(f"oai:f.org:{n}", dc("x" * 1000)) for n in range(5)))
    with asked(harvester, page_bytes=2600) as ask:
        assert [len(texts(page, "identifier")) for page in ask.pages(metadataPrefix="oai_dc")] == [2, 2, 1]
    with asked(harvester, page_bytes=1) as ask:
        assert len(list(ask.pages(metadataPrefix="oai_dc"))) == 5


@on_one_database
def test_a_document_that_cannot_be_embedded_has_no_record_in_its_own_format(harvester: Harvester) -> None:
    damaged = replace(document("a.1", b"<x"), is_embeddable=False)
    store(
        harvester,
        damaged,
        document("a.2", b"<!DOCTYPE x SYSTEM 'x.dtd'><x xmlns='urn:x'/>"),
        document("a.3", eml("a.3.1")),
        document("a.4", b"<x/>", "no URI"),
    )
    with asked(harvester, page_records=1) as ask:
        for verb in ("ListIdentifiers", "ListRecords"):
            assert ask.identifiers(verb, metadataPrefix="eml-2.1.1") == [f"{OURS}a.2", f"{OURS}a.3"]
            assert len(ask.identifiers(verb, metadataPrefix="oai_dc")) == 4
        assert texts(ask("GetRecord", identifier=f"{OURS}a.4", metadataPrefix="oai_dc"), "setSpec") == ["format"]
        assert texts(ask("ListMetadataFormats", identifier=f"{OURS}a.1"), "metadataPrefix") == ["oai_dc"]
        root = ask("GetRecord", identifier=f"{OURS}a.1", metadataPrefix="eml-2.1.1")
        assert codes(root) == ["cannotDisseminateFormat"]


def statuses(ask: Asked, prefix: str, verb: str = "ListRecords") -> dict[str, str | None]:
    """The status of each record in a format."""
    headers = [header for page in ask.pages(verb, metadataPrefix=prefix) for header in page.iter(f"{OAI}header")]
    found = {header.findtext(f"{OAI}identifier") or "": header.get("status") for header in headers}
    assert len(found) == len(headers)
    return found


def test_a_record_in_a_new_format_is_deleted_in_the_former_one(filled: Harvester) -> None:
    alder, newest = f"{OURS}alder.1", "https://eml.ecoinformatics.org/eml-2.2.0"
    store(
        filled,
        document("birch.1", eml("birch.1.1")),
        document("alder.1", b"<e:eml xmlns:e='urn:e'/>", newest, revision=2),
    )
    with asked(filled, page_records=1) as ask:
        for verb in ("ListIdentifiers", "ListRecords"):
            assert statuses(ask, "eml-2.1.1", verb) == {alder: "deleted", f"{OURS}birch.1": None}
            assert statuses(ask, "eml-2.2.0", verb) == {alder: None}
        first = ask("ListRecords", metadataPrefix="eml-2.1.1")
        assert [each.get("completeListSize") for each in first.iter(f"{OAI}resumptionToken")] == ["2"]
        root = ask("GetRecord", identifier=alder, metadataPrefix="eml-2.1.1")
        assert [each.get("status") for each in root.iter(f"{OAI}header")] == ["deleted"]
        prefixes = texts(ask("ListMetadataFormats", identifier=alder), "metadataPrefix")
        assert prefixes == ["oai_dc", "eml-2.1.1", "eml-2.2.0"]
        assert ask.identifiers(metadataPrefix="oai_dc", set="site:alder~20creek").count(alder) == 1
    store(filled, document("alder.1", b"<e:eml xmlns:e='urn:e'/>", revision=3))
    with asked(filled) as ask:
        assert statuses(ask, "eml-2.1.1") == {alder: None, f"{OURS}birch.1": None}
        assert statuses(ask, "eml-2.2.0") == {alder: "deleted"}
    store(filled, replace(document("alder.1", b"<eml", revision=4), is_embeddable=False))
    with asked(filled) as ask:
        assert statuses(ask, "eml-2.1.1")[alder] == "deleted"
        assert ask.identifiers(metadataPrefix="oai_dc").count(alder) == 1


def test_a_format_stays_while_another_document_of_the_item_has_it(filled: Harvester) -> None:
    """The source repository has the format DataCite under two prefixes."""
    other = record("oai:frogs.org:2", IN_DATACITE, prefix="oai_datacite", kind=DATACITE, site=2)
    mods = "http://www.loc.gov/mods/v3"
    store(filled, other)
    store(filled, record("oai:frogs.org:2", b"<mods xmlns='urn:m'/>", prefix="datacite", kind=mods, site=2, revision=2))
    with asked(filled) as ask:
        assert statuses(ask, "datacite") == {"oai:frogs.org:2": None}
        assert statuses(ask, "mods") == {"oai:frogs.org:2": None}
    delete(filled, other)
    filled.rows("UPDATE catalogue_former_format SET changed_at = '2001-01-01 00:00:00.000000'")
    with asked(filled) as ask:
        assert statuses(ask, "datacite") == {"oai:frogs.org:2": "deleted"}
        assert codes(ask("ListRecords", metadataPrefix="datacite", until="2001-01-02")) == ["noRecordsMatch"]


def test_what_is_hidden_is_not_there(filled: Harvester) -> None:
    for hidden in ("frogs", "alder creek"):
        with asked(filled, hidden=[hidden]) as ask:
            left = {f"{OURS}alder.1"} if hidden == "frogs" else ALL - {f"{OURS}alder.1"}
            assert set(ask.identifiers(metadataPrefix="oai_dc")) == left
            for identifier in ALL:
                root = ask("GetRecord", identifier=identifier, metadataPrefix="oai_dc")
                assert codes(root) == ([] if identifier in left else ["idDoesNotExist"])
            prefixes = texts(ask("ListMetadataFormats"), "metadataPrefix")
            assert prefixes == (["oai_dc", "eml-2.1.1"] if hidden == "frogs" else ["oai_dc", "datacite"])
            sets = texts(ask("ListSets"), "setSpec")
            assert ("site:frogs" in sets, "origin:frogs:d" in sets) == ((hidden != "frogs"),) * 2
            assert ("site:alder~20creek" in sets) == (hidden == "frogs")


@pytest.mark.parametrize("was_harvested", [False, True])
@pytest.mark.parametrize("change", [("edit", "frogs", "--name", "toads"), ("remove", "frogs", "--yes")])
def test_a_hidden_site_stays_hidden_when_it_is_renamed_or_removed(
    filled: Harvester, change: Sequence[str], *, was_harvested: bool
) -> None:
    with asked(filled, hidden=["frogs"]) as ask:
        assert ask.identifiers(metadataPrefix="oai_dc") == [f"{OURS}alder.1"]
        if was_harvested:
            with Session(filled.engine) as session:
                rows = JournalRows(session)
                rows.site_run(rows.run(), session.get_one(HarvestSiteSchedule, 2))
                session.commit()
        assert filled("sites", *change).code == 0
        assert ask.identifiers(metadataPrefix="oai_dc") == [f"{OURS}alder.1"]
        assert texts(ask("ListSets"), "setSpec") == [
            "format", "format:eml", "format:oai_dc", "origin", "site", "site:alder~20creek",
        ]  # fmt: skip
    if was_harvested or "remove" in change:
        with asked(filled, hidden=["frogs"]) as restarted:
            assert restarted.identifiers(metadataPrefix="oai_dc") == [f"{OURS}alder.1"]


def test_hidden_records_have_no_sets_and_no_claim_to_identifiers(filled: Harvester) -> None:
    filled.add_site("secret", "https://secret.example.org/list.xml", contact_email="c@example.org")
    store(
        filled,
        record("oai:toads.org:1", dc("Secret"), origin="toads", sets=("secret",), site=3),
        record("oai:toads.org:1", dc("Toads"), site=2),
    )
    with asked(filled, hidden=["secret"]) as ask:
        assert not [each for each in texts(ask("ListSets"), "setSpec") if "toads" in each or "secret" in each]
        assert "oai:toads.org:1" in ask.identifiers(metadataPrefix="oai_dc")
        assert not codes(ask("GetRecord", identifier="oai:toads.org:1", metadataPrefix="oai_dc"))


def test_tokens_of_others_are_refused(filled: Harvester) -> None:
    with asked(filled, page_records=1) as ask, asked(filled, token_key="another") as other:
        token = texts(ask("ListRecords", metadataPrefix="oai_dc"), "resumptionToken")[0]
        for refusing, verb, text in (
            (other, "ListRecords", token),
            (ask, "ListIdentifiers", token),
            (ask, "ListSets", token),
            (ask, "ListRecords", f"{token}x"),
            (ask, "ListRecords", "<&>"),
        ):
            assert codes(refusing(verb, resumptionToken=text)) == ["badResumptionToken"]
        assert texts(ask("ListRecords", resumptionToken=token), "identifier")


@on_one_database
def test_a_list_of_a_site_that_is_removed_cannot_go_on(filled: Harvester) -> None:
    with asked(filled, page_records=1) as ask:
        [token] = texts(ask("ListRecords", metadataPrefix="oai_dc", set="site:frogs"), "resumptionToken")
        filled.rows("DELETE FROM harvest_site_schedule WHERE name = 'frogs'")
        assert codes(ask("ListRecords", resumptionToken=token)) == ["badResumptionToken"]


def test_a_token_answers_again_after_a_restart(filled: Harvester) -> None:
    with asked(filled, page_records=1) as ask:
        [token] = texts(ask("ListRecords", metadataPrefix="oai_dc"), "resumptionToken")
        first = texts(ask("ListRecords", resumptionToken=token), "identifier")
    with asked(filled, page_records=1) as ask:
        assert texts(ask("ListRecords", resumptionToken=token), "identifier") == first


def test_no_record_is_lost_that_changes_while_a_list_is_read(harvester: Harvester) -> None:
    """A harvester gets it in the list, or in its next one, which begins at the responseDate of the first page."""
    uploads = [record(f"oai:f.org:{number}", dc("x")) for number in range(6)]
    store(harvester, *uploads)
    harvester.rows("UPDATE catalogue_document SET changed_at = '2001-01-01 00:00:00.000000'")
    with asked(harvester, page_records=2) as ask:
        pages = ask.pages(metadataPrefix="oai_dc")
        first = next(pages)
        delete(harvester, uploads[3])
        seen = {*texts(first, "identifier"), *(each for page in pages for each in texts(page, "identifier"))}
        following = ask("ListRecords", metadataPrefix="oai_dc", from_=texts(first, "responseDate")[0])
        assert texts(following, "identifier") == ["oai:f.org:3"]
        assert seen | {"oai:f.org:3"} == {f"oai:f.org:{number}" for number in range(6)}


def test_a_list_whose_rest_has_changed_ends_with_it(harvester: Harvester) -> None:
    uploads = [record(f"oai:f.org:{number}", dc("x")) for number in range(4)]
    store(harvester, *uploads)
    harvester.rows("UPDATE catalogue_document SET changed_at = '2001-01-01 00:00:00.000000'")
    with asked(harvester, page_records=2) as ask:
        pages = ask.pages(metadataPrefix="oai_dc")
        next(pages)
        harvester.rows("UPDATE catalogue_document SET changed_at = '2999-01-01 00:00:00.000000' WHERE change_seq > 2")
        [last] = list(pages)
        assert texts(last, "identifier") == ["oai:f.org:2", "oai:f.org:3"]
        assert texts(last, "resumptionToken") == [""]


@on_one_database
def test_the_last_page_says_how_many_records_came(harvester: Harvester) -> None:
    """Harvesters compare: a record that has left the list is no loss."""
    store(harvester, *(record(f"oai:f.org:{number}", dc("x")) for number in range(6)))
    with asked(harvester, page_records=2) as ask:
        pages = ask.pages(metadataPrefix="oai_dc")
        first = next(pages)
        harvester.rows("UPDATE catalogue_document SET changed_at = '2999-01-01 00:00:00.000000' WHERE change_seq = 3")
        tokens = [page.find(f".//{OAI}resumptionToken") for page in (first, *pages)]
        assert [each.get("cursor") for each in tokens if each is not None] == ["0", "2", "4"]
        assert [each.get("completeListSize") for each in tokens if each is not None] == ["6", "6", "5"]


@on_one_database
def test_a_replica_that_is_behind_moves_the_response_date_back(harvester: Harvester) -> None:
    with asked(harvester, replica_lag=60) as ask:
        [said] = texts(ask("Identify"), "responseDate")
        present = ask.provider._harvester.now()
        assert present - type(present).fromisoformat(said) >= COMMIT_LAG + timedelta(seconds=60)


def test_the_response_date_is_before_every_change_that_is_not_committed(
    ask: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    present = datetime(2026, 11, 20, 2, 30, tzinfo=UTC)
    monkeypatch.setattr(ask.provider._harvester, "now", lambda: present)
    [said] = texts(ask("Identify"), "responseDate")
    assert datetime.fromisoformat(said) == present - COMMIT_LAG


@pytest.mark.parametrize("database", KINDS[1:], indirect=True)
def test_a_harvester_misses_no_change_of_a_machine_whose_clock_is_slow(
    harvester: Harvester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Changes, lists and their ends have their times by the clock of the database."""

    class SlowClock(datetime):
        @classmethod
        def now(cls, zone: tzinfo | None = None) -> datetime:  # type: ignore[override]
            return datetime.now(zone) - timedelta(minutes=10)

    with asked(harvester) as ask:
        [before] = texts(ask("Identify"), "responseDate")
        monkeypatch.setattr(change_feed, "datetime", SlowClock)
        monkeypatch.setattr(clock, "datetime", SlowClock)
        store(harvester, record("oai:frogs.org:1", dc("Frogs")))
        found = texts(ask("ListIdentifiers", metadataPrefix="oai_dc", **{"from": before}), "identifier")
    assert len(found) == 1


def test_a_list_of_a_period_whose_rest_has_changed_ends(harvester: Harvester) -> None:
    store(harvester, *(document(f"a.{number}", eml(f"a.{number}.1")) for number in range(3)))
    harvester.rows("UPDATE catalogue_document SET changed_at = '2026-01-01 00:00:00'")
    with asked(harvester, page_records=2) as ask:
        root = ask("ListRecords", metadataPrefix="oai_dc", until="2026-02-01")
        [token] = texts(root, "resumptionToken")
        harvester.rows("UPDATE catalogue_document SET changed_at = '2026-03-01 00:00:00'")
        assert codes(ask("ListRecords", resumptionToken=token)) == ["noRecordsMatch"]


@on_one_database
@pytest.mark.parametrize("after_the_end", [False, True])
def test_a_list_has_no_record_after_the_end_of_its_request(harvester: Harvester, after_the_end: bool) -> None:
    store(harvester, *(document(f"a.{number}", eml(f"a.{number}.1")) for number in range(3)))
    harvester.rows("UPDATE catalogue_document SET changed_at = '2026-01-01 00:00:00'")
    end = datetime.now(UTC) + timedelta(days=2)
    with asked(harvester, page_records=2) as ask:
        root = ask("ListRecords", metadataPrefix="oai_dc", until=f"{end:%Y-%m-%d}")
        [token] = texts(root, "resumptionToken")
        changed = end + timedelta(days=2 if after_the_end else -1)
        harvester.rows("UPDATE catalogue_document SET changed_at = ?", f"{changed:%Y-%m-%d} 00:00:00")
        assert codes(ask("ListRecords", resumptionToken=token)) == ["noRecordsMatch"]


@on_one_database
def test_a_name_that_hides_nothing_is_noted(filled: Harvester) -> None:
    with opened_with(filled, {"hidden": ["frogs", "toads"]}) as opened:
        _, notes = describe(opened, "http://catalogue.example.org")
    assert notes == ["Nothing is hidden by toads in hidden of [web]: no site and no origin has this name."]


def nested(altered: str = "false", date: str = "2020-01-01", identifier: str = "oai:a.org:1", inner: str = "") -> str:
    return (
        f'<originDescription harvestDate="{date}" altered="{altered}"><baseURL>http://a.org/</baseURL>'
        f"<identifier>{identifier}</identifier><datestamp>{date}</datestamp>"
        f"<metadataNamespace>urn:x</metadataNamespace>{inner}</originDescription>"
    )


@on_one_database
@pytest.mark.parametrize(
    ("received", "number"),
    [
        ([nested()], 2),
        ([nested(inner=nested())], 3),
        ([nested(), nested()], 2),
        ([nested(altered="maybe")], 1),
        ([nested(date="2026-99-99")], 1),
        ([nested(identifier="x[y]")], 1),
        ([nested(inner=nested(altered=""))], 1),
        ([nested(inner="<x/>")], 1),
        (["text"], 1),
    ],
)
def test_the_provenance_of_the_source_is_nested_if_it_fits(
    harvester: Harvester, received: list[str], number: int
) -> None:
    namespace = "http://www.openarchives.org/OAI/2.0/provenance"
    about = [f'<provenance xmlns="{namespace}">{each}</provenance>'.encode() for each in received]
    store(harvester, record("oai:frogs.org:1", dc("Frogs"), about=about))
    with asked(harvester) as ask:
        root = ask("GetRecord", identifier="oai:frogs.org:1", metadataPrefix="oai_dc")
    assert len(list(root.iter(f"{{{namespace}}}originDescription"))) == number


@on_one_database
def test_a_record_whose_source_has_no_uris_is_without_provenance(harvester: Harvester) -> None:
    store(harvester, record("x[y]", dc("Frogs")), record("%25zz", dc("Toads")))
    with asked(harvester) as ask:
        root = ask("ListRecords", metadataPrefix="oai_dc")
    assert len(texts(root, "identifier")) == 2
    assert not list(root.iter(f"{OAI}about"))


def test_an_origin_is_that_of_all_its_characters(filled: Harvester) -> None:
    with asked(filled) as ask:
        assert codes(ask("ListIdentifiers", metadataPrefix="oai_dc", set="origin:frogs~20")) == ["noRecordsMatch"]


@on_one_database
def test_answers_have_only_characters_of_xml(harvester: Harvester) -> None:
    harvester.add_site("alder", "https://alder.example.org/list.xml", contact_email="c@example.org")
    store(harvester, document("a.1", b"<x/>", "urn:x"))
    with harvester.opened(engine=harvester.engine) as opened, opened.writing() as session:
        session.execute(update(HarvestSiteSchedule).values(name="alder\uffff"))
        session.execute(update(CatalogueDocument).values(title="a\x01b\ufffe"))
    with asked(harvester) as ask:
        assert "Site alder\ufffd" in texts(ask("ListSets"), "setName")
        root = ask("ListRecords", metadataPrefix="oai_dc")
        assert next(root.iter("{http://purl.org/dc/elements/1.1/}title")).text == "a\ufffdb\ufffd"


@on_one_database
def test_identify_has_the_addresses_that_the_protocol_accepts(filled: Harvester) -> None:
    with opened_with(filled, {}) as opened:
        ours = opened.settings.harvester

        def administrators(*addresses: str) -> Sequence[str]:
            changed = ours.model_copy(update={"administrators": addresses})
            settings = opened.settings.model_copy(update={"harvester": changed})
            with services.Harvester(settings, engine=filled.engine) as of:
                return describe(of, "http://catalogue.example.org")[0].administrators

        assert administrators("root@localhost", "a@example.org") == ["a@example.org"]
        with pytest.raises(SettingsError, match="root@localhost"):
            administrators("root@localhost")
